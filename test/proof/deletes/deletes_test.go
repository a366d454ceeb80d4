// Package deletes_test is the delete proof: random sequences of commits and passes over two Moorings of one repository, against a real API server.
// Objects are added, dropped, renamed, moved from one Mooring to the other, written in another version of their kind, claimed by
// both; folders are emptied, broken, spoiled and mended; passes come in any order, at the same time, and break off in the middle.
//
// Every deletion that there is in the cluster is seen by a witness, and judged by what Git said at that instant: an object that the newest good commit of
// either folder has is never deleted, so its UID never changes; a CRD or a namespace is never deleted at all; a copy that a user made of an
// object, label included, is left alone. In the end, after some quiet passes, nothing is there that nobody wants, and nothing is written any more.
//
// A sequence that goes wrong is printed, after every step was taken out of it that is not needed to make it go wrong.
package deletes_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/mooring-dev/mooring/test/kube"
	"github.com/mooring-dev/mooring/test/proof"
	"github.com/mooring-dev/mooring/test/proof/witness"
)

const (
	// whole and short are how long new sequences are begun.
	whole, short = 20 * time.Minute, 18 * time.Second
	// atOnce is how many are played beside each other: they mostly wait.
	atOnce = 4
	// patience with one sequence.
	patience = 2 * time.Minute
)

func TestMain(m *testing.M) { os.Exit(kube.Run(m)) }

// gvrs of the pool's kinds. The definition of the gadgets is there before; that of widgets, which there are none of, is in the pool.
var gvrs = map[schema.GroupKind]schema.GroupVersionResource{
	{Kind: "ConfigMap"}: {Version: "v1", Resource: "configmaps"},
	{Kind: "Secret"}:    {Version: "v1", Resource: "secrets"},
	{Kind: "Namespace"}: {Version: "v1", Resource: "namespaces"},
	{Group: "networking.istio.io", Kind: "VirtualService"}:            {Group: "networking.istio.io", Version: "v1", Resource: "virtualservices"},
	{Group: "networking.istio.io", Kind: "DestinationRule"}:           {Group: "networking.istio.io", Version: "v1", Resource: "destinationrules"},
	{Group: "networking.istio.io", Kind: "ServiceEntry"}:              {Group: "networking.istio.io", Version: "v1", Resource: "serviceentries"},
	{Group: "proof.example.com", Kind: "Gadget"}:                      {Group: "proof.example.com", Version: "v1", Resource: "gadgets"},
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: {Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
}

func newStage(t *testing.T) *stage {
	t.Helper()
	cluster := kube.Start(t)
	objects, err := dynamic.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	gadgets := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(crd("proof.example.com", "Gadget", 0)), &gadgets.Object); err != nil {
		t.Fatal(err)
	}
	definitions := objects.Resource(gvrs[schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}])
	if _, err := definitions.Create(t.Context(), gadgets, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	var kinds []witness.Kind
	for gk, gvr := range gvrs {
		kinds = append(kinds, witness.Kind{GroupVersionResource: gvr, Kind: gk.Kind})
	}
	seen, err := witness.Watch(t.Context(), cluster.Config(), kinds...)
	if err != nil {
		t.Fatal(err)
	}
	return &stage{config: cluster.Config(), objects: objects, witness: seen}
}

// trial plays a sequence in a namespace of its own.
func (s *stage) trial(t *testing.T, all sequence) (faults, told []string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), patience, fmt.Errorf("not within %s", patience))
	defer cancel()
	ns := kube.Start(t).Namespace(t)
	faults, told, err = play(ctx, t, s, ns, all)
	return faults, told, errors.Join(err, s.wipe(ctx, ns))
}

func TestDeleteProof(t *testing.T) {
	seed := proof.Seed(t)
	s := newStage(t)
	limit := short
	if proof.Full() {
		limit = whole
	}
	begun := time.Now()
	var mu sync.Mutex
	played, steps, faulty := 0, 0, 0
	var g errgroup.Group
	g.SetLimit(atOnce)
	for n := uint64(0); time.Since(begun) < limit; n++ {
		mu.Lock()
		enough := faulty >= 3
		mu.Unlock()
		if enough {
			break
		}
		g.Go(func() error {
			all := draw(rand.New(rand.NewPCG(seed+n, 0)))
			faults, told, err := s.trial(t, all)
			mu.Lock()
			defer mu.Unlock()
			played, steps = played+1, steps+len(all)
			if err == nil && len(faults) == 0 {
				return nil
			}
			faulty++
			s.report(t, seed+n, all, faults, told, err)
			return nil
		})
	}
	_ = g.Wait() // no goroutine returns an error
	text := fmt.Sprintf("%d sequences of %d steps in %s, %d of them with faults; %d deletions were judged.",
		played, steps, time.Since(begun).Round(time.Second), faulty, s.judged.Load())
	t.Log(text)
	if proof.Full() {
		proof.Record(t, "deletes", text)
	}
}

// report a sequence that went wrong, as short as it can be made.
func (s *stage) report(t *testing.T, seed uint64, all sequence, faults, told []string, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("MOORING_PROOF_SEED=%d: %v\n%s", seed, err, strings.Join(told, "\n"))
		return
	}
	small, faults, told := s.minimise(t, all, faults, told)
	t.Errorf("MOORING_PROOF_SEED=%d:\n%s\nby these steps, of the %d that were drawn:\n%s\nwhat came of them:\n%s",
		seed, strings.Join(faults, "\n"), len(all), small, strings.Join(told, "\n"))
}

// minimise takes steps out of a sequence as long as it still goes wrong in the same way.
func (s *stage) minimise(t *testing.T, all sequence, faults, told []string) (sequence, []string, []string) {
	t.Helper()
	begun := time.Now()
	for size := len(all) / 2; size >= 1; size /= 2 {
		for at := len(all) - size; at >= 0 && time.Since(begun) < time.Minute; at -= size {
			fewer := slices.Delete(slices.Clone(all), at, at+size)
			again, toldAgain, err := s.trial(t, fewer)
			if err == nil && alike(faults, again) {
				all, faults, told = fewer, again, toldAgain
			}
		}
	}
	return all, faults, told
}

// alike says whether the first fault of both begins the same way.
func alike(a, b []string) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	first := func(s []string) string { word, _, _ := strings.Cut(s[len(s)-1], ":"); return word }
	return first(a) == first(b)
}
