package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check/proxy"
	"github.com/mooring-dev/mooring/render/check/world"
)

// trafficDeadline bounds how long the proxies of a mesh may be asked. One of a mesh of 15,000 objects takes about a second.
const trafficDeadline = 30 * time.Second

// traffic is what the proxies of a world are told. It is found out when the first rule asks, and for all rules once.
type traffic struct {
	set     *render.Set
	mesh    *proxy.Mesh
	configs []*proxy.Config
	// missed are the proxies for which there was no time, late says so, and err that nothing could be asked.
	missed    []proxy.Proxy
	late, err error
	asked     bool
}

// proxies are asked, all whom the set may concern. Where that took too long, the gap is reported: nil when nothing is known, and what is known where whole
// is false. Who says that no proxy has something wants the whole.
func (v *view) proxies(ctx context.Context, whole bool) *traffic {
	t := v.traffic
	if !t.asked {
		t.asked = true
		t.err = t.ask(ctx, v.World, v.before)
	}
	if t.err != nil {
		v.unknown("the routes of the proxies", t.err.Error())
		return nil
	}
	if len(t.missed) == 0 {
		return t
	}
	v.unknown(fmt.Sprintf("the routes of %d proxies, the first of which are %s", len(t.missed), t.missed[0]), t.late.Error())
	if whole {
		return nil
	}
	return t
}

func (t *traffic) ask(ctx context.Context, w, before *world.World) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the generator panicked: %v", p)
		}
	}()
	if len(w.Of(networkingGroup, "VirtualService")) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, trafficDeadline, errors.New("it took longer than "+trafficDeadline.String()))
	defer cancel()
	config, _ := w.MeshConfig()
	if t.mesh, err = proxy.New(ctx, w, proxy.Options{Before: before, MeshConfig: config}); err != nil {
		return err
	}
	focus := focusOn(t.set, w)
	for _, p := range t.mesh.Proxies() {
		if !focus.concerns(p) {
			continue
		}
		c, err := t.mesh.Ask(ctx, p)
		if err != nil {
			t.missed, t.late = append(t.missed, p), err
			continue
		}
		t.configs = append(t.configs, c)
	}
	return nil
}

// close ends what the library started.
func (t *traffic) close() {
	if t.mesh != nil {
		t.mesh.Close()
	}
}

// concerns says that the VirtualService is meant for the proxy: it is a gateway that the VirtualService names, in the namespace of the VirtualService, or in one
// that its exportTo names.
func concerns(vs *world.Object, exportTo []string, p proxy.Proxy) bool {
	if p.Gateway || p.Namespace == vs.ID.Namespace {
		return true
	}
	return slices.ContainsFunc(append(slices.Clone(p.Alike), p.Namespace), func(ns string) bool {
		return ns == vs.ID.Namespace || slices.Contains(exportTo, ns)
	})
}
