//go:build deps

package test

import (
	_ "istio.io/istio/istioctl/cmd"
	_ "istio.io/istio/manifests"
	_ "istio.io/istio/operator/cmd/mesh"
	_ "istio.io/istio/operator/pkg/render"
	_ "istio.io/istio/pilot/cmd/pilot-discovery/app"
	_ "istio.io/istio/pilot/pkg/networking/core"
	_ "istio.io/istio/pkg/adsc"
	_ "istio.io/istio/pilot/pkg/simulation"
	_ "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	_ "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
)
