# What a newcomer types: `make demo` and `make test`. `make help` lists the rest.

SHELL         := /bin/bash
.SHELLFLAGS   := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS     += --no-print-directory

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

# As in the image: the binary is static, and smaller, since with cgo the linker keeps every method of every type for the plugins that kustomize
# could load. Set for all, so that tests and binary share what is compiled.
export CGO_ENABLED := 0

# The packages whose tests run under the race detector: those where goroutines share data. It doubles the time to compile
# all that they import, so it is not for all. It needs cgo.
RACE := ./repos/... ./sync/... ./render

# Two packages at a time, on the two cores that this project is made for. The timeout is for one package, and generous: a first
# start of the control plane shares the machine with compilers. -count=1, because the tests run binaries that Go's cache of results does not look at.
GOTEST := go test -p 2 -count=1 -timeout 30m

CLUSTER := go run ./test/kube/cmd/cluster

.NOTPARALLEL: # two cores, and what is slow is parallel itself

.PHONY: help
help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: build
build: ## build bin/mooring
	go build -ldflags '-s -w -X main.version=$(VERSION)' -o bin/mooring ./cmd/mooring

.PHONY: demo
demo: ## set up everything on this machine and show the main job, step by step; DEMO_EXIT=1 ends after it
	go run ./test/demo

.PHONY: test
test: setup lint unit e2e ## lint and all tests, against a real API server and real Git servers

.PHONY: unit
unit: control-plane forge ## the tests beside the code: render, check, repos, sync, and apply against the API server
	CGO_ENABLED=1 $(GOTEST) -race $(RACE)
	CGO_ENABLED=1 $(GOTEST) -race -run TestManyAtOnce ./render/mesh
	$(GOTEST) $$(comm -23 <(go list ./... | grep -vE '^[^/]+/[^/]+/[^/]+/test(/|$$)' | sort) <(go list $(RACE) | sort))

.PHONY: e2e
e2e: control-plane forge ## the tests of the whole: the real binary, Git servers and API server; the layout and the docs
	$(GOTEST) ./test/...

.PHONY: proof
proof: control-plane ## the proofs in full: traffic, crashes, deletes, plans; hours. MOORING_PROOF_SEED=N makes the same choices again
	MOORING_PROOF=full go test -p 1 -count=1 -timeout 3h -v ./test/proof/...

.PHONY: lint
lint: ## format, vet, staticcheck, errcheck, go.mod, generated code
	@test/lint

.PHONY: bench-render
bench-render: ## measure renders beside kustomize build, into test/bench/RESULTS.md; BENCH_RENDER='-sizes 1000 -limit 10m' for other than the default
	go run ./test/bench/render $(BENCH_RENDER)

.PHONY: bench-check
bench-check: ## measure checks beside istioctl analyze, into test/bench/RESULTS.md; BENCH_CHECK='-sizes 500' for other than the default
	go run ./test/bench/check $(BENCH_CHECK)

.PHONY: bench-sync
bench-sync: control-plane ## measure an agent at work and at rest beside kubectl and Flux, into test/bench/RESULTS.md; BENCH_SYNC='-rest 1m' for other than the default
	go run ./test/bench/sync $(BENCH_SYNC)

.PHONY: bench-git
bench-git: ## measure fetching beside git, into test/bench/RESULTS.md; BENCH_GIT='-apps 100 -large 50' for other than the default
	go run ./test/bench/git $(BENCH_GIT)

.PHONY: bench
bench: bench-render bench-check bench-git bench-sync ## all of them, one after the other

.PHONY: vuln
vuln: ## known holes in what the binary really calls; needs the network, so it is not part of the gate
	go tool govulncheck ./cmd/...

.PHONY: generate
generate: ## write what is generated: deep copies, CRDs, and what kustomize knows of an AppConfiguration
	go tool controller-gen object crd paths=./sync/v1alpha1 output:crd:dir=deploy/crds
	go generate ./render/app
	cp render/app/crd.yaml deploy/crds/mooring.dev_appconfigurations.yaml
	go generate ./render

.PHONY: setup
setup: ## install what the tests need of Debian's packages, or say what is missing
	@test/setup

.PHONY: control-plane
control-plane:
	@$(CLUSTER) build

.PHONY: forge
forge:
	@go run ./test/gitea/cmd/build

.PHONY: cluster-up
cluster-up: ## start a control plane in the background, with all CRDs; writes .cache/kubeconfig
	@$(CLUSTER) up

.PHONY: cluster-down
cluster-down: ## stop it and remove its data
	@$(CLUSTER) down

.PHONY: kubectl
kubectl: control-plane ## build bin/kubectl
