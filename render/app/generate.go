package app

//go:generate sh -c "go tool controller-gen crd paths=. output:crd:stdout > crd.yaml.new && mv crd.yaml.new crd.yaml"
