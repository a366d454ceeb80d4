package apply

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// HealthOf judges a complete object by these checks.
func HealthOf(full *unstructured.Unstructured, checks *HealthChecks) Health {
	return *Unit{Health: checks}.healthOf(full)
}
