package report_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/sync/report"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

func virtual(i int) render.ID {
	return render.ID{Group: "networking.istio.io", Kind: "VirtualService", Namespace: "shop", Name: fmt.Sprintf("r%d", i)}
}

// failed is a pass in which this many objects failed for one reason, as the API server words it.
func failed(n int, more ...error) report.Outcome {
	var errs []error
	for i := range n {
		errs = append(errs, &apply.ObjectError{
			Op: "apply", ID: virtual(i), Origin: render.Origin{File: "routes.yaml", Line: 10*i + 1},
			Err: fmt.Errorf(`virtualservices.networking.istio.io "r%d" is forbidden: User "agent" cannot patch resource "virtualservices" in API group "networking.istio.io" in the namespace "shop"`, i),
		})
	}
	return report.Outcome{Reason: v1alpha1.ReasonApplyFailed, Stage: report.StageApply, Err: staged{errors.Join(append(errs, more...)...)}}
}

// staged wraps an error as a pass does, which adds no words.
type staged struct{ error }

func (s staged) Unwrap() error { return s.error }

func TestFaultsOfOneCauseAreToldOnce(t *testing.T) {
	other := &apply.ObjectError{Op: "delete", ID: virtual(99), Err: errors.New("admission webhook denied the request")}
	got := report.Message(failed(30, other, errors.New("run shop/prod: the wire was cut")))
	want := `apply VirtualService/shop/r0 (routes.yaml:1), VirtualService/shop/r1 (routes.yaml:11), VirtualService/shop/r2 (routes.yaml:21) and 27 more objects: ` +
		`virtualservices.networking.istio.io "…" is forbidden: User "agent" cannot patch resource "virtualservices" in API group "networking.istio.io" in the namespace "…"; ` +
		`delete VirtualService/shop/r99: admission webhook denied the request; run shop/prod: the wire was cut. It is tried again by itself.`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	one := report.Message(failed(1))
	if !strings.Contains(one, `apply VirtualService/shop/r0 (routes.yaml:1): virtualservices.networking.istio.io "r0" is forbidden`) || strings.Contains(one, "more") {
		t.Errorf("one fault: %s", one)
	}
	var causes []error
	for i := range 7 {
		causes = append(causes, &apply.ObjectError{Op: "plan", ID: virtual(i), Err: fmt.Errorf("cause %d", i)})
	}
	if got := report.Message(report.Outcome{Reason: v1alpha1.ReasonApplyFailed, Err: errors.Join(causes...)}); !strings.Contains(got, "plan VirtualService/shop/r2: cause 2; and 4 more faults") {
		t.Errorf("seven causes: %s", got)
	}
	// The same words about an apply and a delete are two things.
	both := errors.Join(&apply.ObjectError{Op: "apply", ID: virtual(1), Err: errors.New("denied")}, &apply.ObjectError{Op: "delete", ID: virtual(2), Err: errors.New("denied")})
	if got := report.Message(report.Outcome{Reason: v1alpha1.ReasonApplyFailed, Err: both}); !strings.Contains(got, "apply VirtualService/shop/r1: denied; delete VirtualService/shop/r2: denied") {
		t.Errorf("two verbs: %s", got)
	}
}

func TestUnhealthyObjectsThatSayTheSameAreToldTogether(t *testing.T) {
	var all []apply.Health
	for i := range 30 {
		all = append(all, apply.Health{ID: virtual(i), Status: status.FailedStatus, Message: "istiod finds IST0101 ReferencedResourceNotFound"})
	}
	for i := range 4 {
		all = append(all, apply.Health{ID: render.ID{Kind: "Deployment", Namespace: "shop", Name: fmt.Sprint("d", i)}, Status: status.InProgressStatus, Message: fmt.Sprintf("Available: %d/5.", i)})
	}
	out := report.Outcome{Reason: v1alpha1.ReasonProgressing, Result: &apply.Result{Health: all}}
	got := report.Message(out)
	want := "waiting for VirtualService/shop/r0, VirtualService/shop/r1, VirtualService/shop/r2 and 27 more objects (Failed: istiod finds IST0101 ReferencedResourceNotFound); " +
		"Deployment/shop/d0 (InProgress: Available: 0/5); Deployment/shop/d1 (InProgress: Available: 1/5); and 2 more objects"
	if !strings.HasSuffix(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
