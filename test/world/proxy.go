package world

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Proxy stands between agents and the world's API server. Who comes through it is the admin.
type Proxy struct {
	// Kubeconfig leads through the proxy.
	Kubeconfig string

	server *httptest.Server
}

// StartProxy starts a proxy in front of the API server. Every request is given to serve, which hands it on to the API server, or not.
func (w *World) StartProxy(serve func(apiserver http.Handler, w http.ResponseWriter, r *http.Request)) (*Proxy, error) {
	config := w.Cluster.Config()
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("start a proxy: %w", err)
	}
	transport, err := rest.TransportFor(config) // adds the admin's token
	if err != nil {
		return nil, fmt.Errorf("start a proxy: %w", err)
	}
	dir, err := os.MkdirTemp(w.Dir, "proxy-")
	if err != nil {
		return nil, fmt.Errorf("start a proxy: %w", err)
	}
	apiserver := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // watches
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	p := &Proxy{
		Kubeconfig: filepath.Join(dir, "kubeconfig"),
		server:     httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(apiserver, w, r) })),
	}
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["proxy"] = &clientcmdapi.Cluster{Server: p.server.URL}
	kubeconfig.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy"}
	kubeconfig.CurrentContext = "proxy"
	if err := clientcmd.WriteToFile(*kubeconfig, p.Kubeconfig); err != nil {
		p.Close()
		return nil, fmt.Errorf("start a proxy: %w", err)
	}
	return p, nil
}

// Close waits for the requests that are under way, watches too: the agents end before it, or they come back at once.
func (p *Proxy) Close() {
	p.server.CloseClientConnections()
	p.server.Close()
}
