package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check"
	"github.com/mooring-dev/mooring/render/check/analysis"
	"github.com/mooring-dev/mooring/render/check/proxy"
	"github.com/mooring-dev/mooring/render/check/world"
)

var benchmark = regexp.MustCompile(`(?m)^BenchmarkStructure/(\d+)/(first|second)\S*\s+\d+\s+(\d+) ns/op`)

// structure runs the benchmark of the rules on single objects. They are no part of the package's API by themselves.
func structure(ctx context.Context) ([]figure, error) {
	out, err := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^BenchmarkStructure$", "-benchtime", "3x", "./render/check").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("run the benchmark: %w: %s", err, out)
	}
	bySize := map[int]*figure{}
	var all []*figure
	for _, m := range benchmark.FindAllStringSubmatch(string(out), -1) {
		n, _ := strconv.Atoi(m[1])
		ns, _ := strconv.ParseInt(m[3], 10, 64)
		if bySize[n] == nil {
			bySize[n] = &figure{objects: n, what: "rules on single objects", note: "again: nothing changed"}
			all = append(all, bySize[n])
		}
		if m[2] == "first" {
			bySize[n].first = time.Duration(ns)
		} else {
			bySize[n].again = time.Duration(ns)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("read the benchmark: no figures in %s", out)
	}
	var figures []figure
	for _, f := range all {
		figures = append(figures, told(*f))
	}
	return figures, nil
}

// layers are the analyzers and the generator by themselves. The analyzers' first run converts the objects.
func layers(ctx context.Context, o options) ([]figure, error) {
	var figures []figure
	for _, n := range o.sizes {
		set, err := mesh(n)
		if err != nil {
			return nil, err
		}
		f, err := twice(n, "Istio's analyzers", o.rounds, set, func() func(*render.Set) error {
			converter := world.NewConverter()
			return func(set *render.Set) error {
				_, err := analysis.Run(ctx, converter.After(set, nil), analysis.Options{})
				return err
			}
		})
		if err != nil {
			return nil, err
		}
		figures = append(figures, f)
		f, err = twice(n, "Istio's generator, one proxy", o.rounds, set, func() func(*render.Set) error {
			converter := world.NewConverter()
			return func(set *render.Set) error { return ask(ctx, converter.After(set, nil)) }
		})
		if err != nil {
			return nil, err
		}
		figures = append(figures, f)
	}
	return figures, nil
}

// ask makes a mesh and asks the first of its proxies.
func ask(ctx context.Context, w *world.World) error {
	m, err := proxy.New(ctx, w, proxy.Options{})
	if err != nil {
		return err
	}
	defer m.Close()
	proxies := m.Proxies()
	if len(proxies) == 0 {
		return fmt.Errorf("ask a proxy: the mesh has none")
	}
	_, err = m.Ask(ctx, proxies[0])
	return err
}

// wholes are checks as the command and the agent make them.
func wholes(ctx context.Context, o options) ([]figure, error) {
	var figures []figure
	for _, n := range o.sizes {
		set, err := mesh(n)
		if err != nil {
			return nil, err
		}
		for _, with := range []struct {
			what    string
			cluster *world.Cluster
		}{{"a whole check", nil}, {"a whole check, with a cluster", living(set)}} {
			var last *check.Report
			f, err := twice(n, with.what, o.rounds, set, func() func(*render.Set) error {
				checker := check.New()
				return func(set *render.Set) (err error) {
					last, err = checker.Check(ctx, check.Request{Set: set, Cluster: with.cluster})
					return err
				}
			})
			if err != nil {
				return nil, err
			}
			for _, g := range last.Gaps {
				if strings.HasPrefix(g.About, "the routes of") {
					f.note = strings.TrimSpace("not all proxies: " + g.Why)
				}
			}
			figures = append(figures, f)
		}
	}
	return figures, nil
}

// twice measures a thing that was made anew, and once more after one object changed; each several times.
func twice(n int, what string, rounds int, set *render.Set, anew func() func(*render.Set) error) (figure, error) {
	var first, again []time.Duration
	for i := range rounds {
		do := anew()
		took, err := timed(func() error { return do(set) })
		if err != nil {
			return figure{}, fmt.Errorf("measure %s of %d objects: %w", what, n, err)
		}
		first = append(first, took)
		next, err := changed(set, i)
		if err != nil {
			return figure{}, err
		}
		took, err = timed(func() error { return do(next) })
		if err != nil {
			return figure{}, fmt.Errorf("measure %s of %d objects: %w", what, n, err)
		}
		again = append(again, took)
		if took > 5*time.Second { // once is enough
			break
		}
	}
	return told(figure{objects: n, what: what, first: median(first), again: median(again)}), nil
}

// told shows a figure while the others are still measured.
func told(f figure) figure {
	fmt.Println(f)
	return f
}

func timed(do func() error) (time.Duration, error) {
	begun := time.Now()
	err := do()
	return time.Since(begun), err
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}
