//go:build deps

package test

import (
	_ "github.com/google/cel-go/cel"
	_ "go.uber.org/goleak"
	_ "istio.io/istio/istioctl/pkg/analyze"
	_ "istio.io/istio/pkg/config/analysis/analyzers"
	_ "istio.io/istio/pkg/config/analysis/local"
	_ "istio.io/istio/pilot/pkg/networking/core"
	_ "k8s.io/apiserver/pkg/cel/environment"
	_ "k8s.io/apiserver/pkg/cel/library"
)
