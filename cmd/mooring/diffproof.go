package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/mooring-dev/mooring/render/check/world"
	"github.com/mooring-dev/mooring/sync"
	"github.com/mooring-dev/mooring/sync/proof"
)

// proofHelp is what the help of diff says of --proof.
const proofHelp = `With --proof, every state that the mesh is in between two writes of the plan is put through the
generator that istiod uses, over all that lives in the cluster: writes of one wave in any order, and
those of different kinds in any order up to a gate that waits for the proxies. Each route that would
lead a proxy to a cluster that it does not have is named, with the writes that make it so. Routes
that lead to nothing before the plan already are counted apart.`

// proveAll proves each plan that changes something, over what lives now.
func proveAll(ctx context.Context, config *rest.Config, previews []preview, states int) error {
	var live *world.Cluster
	var errs []error
	converter := world.NewConverter()
	for i := range previews {
		p := &previews[i]
		if p.outcome.Plan == nil {
			continue
		}
		if p.still = !p.outcome.Plan.Changes(); p.still {
			continue
		}
		if live == nil {
			var err error
			if live, err = sync.ReadCluster(ctx, config, ""); err != nil {
				return err
			}
		}
		report, err := proof.Plan(ctx, p.outcome.Plan, live, proof.Options{Limit: states, Converter: converter})
		if err != nil {
			errs = append(errs, fmt.Errorf("diff Mooring %s: %w", p.name(), err))
			continue // half a proof is none
		}
		p.proof = report
	}
	return errors.Join(errs...)
}

// printProof writes below its plan what came of the proof: green when all is well, red what breaks.
func printProof(w io.Writer, color palette, p preview) error {
	r := p.proof
	if p.still {
		_, err := fmt.Fprintln(w, color.green("nothing is written, so there is no state in between to look at"))
		return err
	}
	if r == nil {
		return nil
	}
	paint := color.green
	if !r.OK() {
		paint = color.red
	}
	var lines []string
	for line := range strings.SplitSeq(r.String(), "\n") {
		lines = append(lines, paint(line))
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

// jsonProof is a report as JSON. Its names are a promise, as those of jsonPreview.
type jsonProof struct {
	OK      bool `json:"ok"`
	States  int  `json:"states"`
	All     bool `json:"allStates"`
	Proxies int  `json:"proxies"`
	// Broken routes, those of virtual hosts that go with the plan, and those that lead to nothing whatever the order.
	Broken  []jsonRoute `json:"broken"`
	Retired []jsonRoute `json:"retired"`
	Known   []jsonRoute `json:"known"`
	// Unread kinds, each with the reason.
	Unread map[string]string `json:"unread,omitempty"`
}

type jsonRoute struct {
	Object  jsonID   `json:"object"`
	Field   string   `json:"field"`
	Host    string   `json:"host"`
	Port    int      `json:"port"`
	Cluster string   `json:"cluster"`
	Proxies []string `json:"proxies"`
	Message string   `json:"message"`
}

func proofForJSON(r *proof.Report) *jsonProof {
	if r == nil {
		return nil
	}
	j := &jsonProof{
		OK: r.OK(), States: r.States, All: r.All, Proxies: r.Proxies,
		Broken: routesForJSON(r.Broken), Retired: routesForJSON(r.Retired), Known: routesForJSON(r.Known),
	}
	for gk, why := range r.Unread {
		if j.Unread == nil {
			j.Unread = map[string]string{}
		}
		j.Unread[gk.String()] = why
	}
	return j
}

func routesForJSON(all []proof.Violation) []jsonRoute {
	out := []jsonRoute{}
	for _, v := range all {
		r := jsonRoute{Object: jsonID(v.Object), Field: v.Field, Host: v.Host, Port: v.Port, Cluster: v.Cluster, Message: v.String()}
		for _, p := range v.Proxies {
			r.Proxies = append(r.Proxies, p.String())
		}
		out = append(out, r)
	}
	return out
}
