// Package kube gives tests, the demo and a newcomer a real Kubernetes control plane on loopback.
package kube
