// Command server is a Kubernetes control plane in one file: etcd, kube-apiserver, kube-controller-manager
// and kubectl, built from their Go modules, so that tests, the demo and a newcomer need no prebuilt binary
// and no cluster. The first argument chooses the part; a file named kubectl is kubectl.
//
// It is a module of its own: k8s.io/kubernetes needs some thirty replace lines and hundreds of modules that
// the product must not carry. One binary rather than four, because linking is the slow part of a warm build;
// the parts still run as processes of their own, so that a test can restart the API server alone.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func main() {
	if filepath.Base(os.Args[0]) == "kubectl" {
		kubectl()
		return
	}
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: server etcd|kube-apiserver|kube-controller-manager|kubectl [flags]")
		os.Exit(2)
	}
	part := os.Args[1]
	os.Args = append([]string{part}, os.Args[2:]...)
	switch part {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-controller-manager":
		os.Exit(cli.Run(controllers.NewControllerManagerCommand()))
	case "kubectl":
		kubectl()
	default:
		fmt.Fprintf(os.Stderr, "server: no part %q; there are etcd, kube-apiserver, kube-controller-manager, kubectl\n", part)
		os.Exit(2)
	}
}

func kubectl() {
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
