package flux

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha1" //nolint:gosec // the name of a revision, as Git's
	"crypto/sha256"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sourceName of the one GitRepository.
const sourceName = "mesh"

// Source is a GitRepository and the server of its artifacts. It stands in for source-controller.
type Source struct {
	client client.Client
	server *http.Server
	url    string

	mu       sync.Mutex
	artifact []byte
}

// NewSource makes the GitRepository, without an artifact yet, and begins to serve.
func NewSource(ctx context.Context, c client.Client) (*Source, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serve artifacts: %w", err)
	}
	s := &Source{client: c, url: "http://" + l.Addr().String()}
	s.server = &http.Server{Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: time.Minute}
	go func() { _ = s.server.Serve(l) }() // ends with Close
	repository := object("source.toolkit.fluxcd.io/v1", "GitRepository", sourceName, map[string]any{
		"url": "http://mesh.example.com/mesh.git", "interval": "1h", "suspend": true,
	})
	if err := c.Create(ctx, repository); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("make the GitRepository: %w", err)
	}
	return s, nil
}

// Close ends the server.
func (s *Source) Close() error { return s.server.Close() }

func (s *Source) serve(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	artifact := s.artifact
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/gzip")
	_, _ = w.Write(artifact) // whoever went away does not need it
}

// Publish makes these files the newest revision, and gives its name and the moment at which the API server was told.
func (s *Source) Publish(ctx context.Context, files map[string]string) (revision string, at time.Time, err error) {
	artifact, err := pack(files)
	if err != nil {
		return "", at, fmt.Errorf("pack an artifact: %w", err)
	}
	s.mu.Lock()
	s.artifact = artifact
	s.mu.Unlock()
	revision = fmt.Sprintf("main@sha1:%x", sha1.Sum(artifact)) //nolint:gosec // see above
	found := object("source.toolkit.fluxcd.io/v1", "GitRepository", sourceName, nil)
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(found), found); err != nil {
		return "", at, err
	}
	now := metav1.Now().UTC().Format(time.RFC3339)
	found.Object["status"] = map[string]any{
		"observedGeneration": found.GetGeneration(),
		"artifact": map[string]any{
			"digest": fmt.Sprintf("sha256:%x", sha256.Sum256(artifact)), "revision": revision, "lastUpdateTime": now, "size": int64(len(artifact)),
			"path": "gitrepository/flux-system/mesh.tar.gz", "url": s.url + "/mesh.tar.gz",
		},
		"conditions": []any{map[string]any{
			"type": "Ready", "status": "True", "reason": "Succeeded", "message": "stored artifact for revision " + revision,
			"lastTransitionTime": now, "observedGeneration": found.GetGeneration(),
		}},
	}
	at = time.Now()
	if err := s.client.Status().Update(ctx, found); err != nil {
		return "", at, fmt.Errorf("write the status of the GitRepository: %w", err)
	}
	return revision, at, nil
}

// pack makes a tar.gz.
func pack(files map[string]string) ([]byte, error) {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	archive := tar.NewWriter(zipped)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name])), Typeflag: tar.TypeReg}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write([]byte(files[name])); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	err := zipped.Close()
	return out.Bytes(), err
}

func object(apiVersion, kind, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"namespace": Namespace, "name": name},
	}}
	if spec != nil {
		u.Object["spec"] = spec
	}
	return u
}
