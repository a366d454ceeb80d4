package istiod

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

var errTimeout = errors.New("the time of spec.propagation.timeout is over")

// Late is a proxy that has not acknowledged what it was sent.
type Late struct {
	// Proxy is the name that it connected with: pod.namespace.
	Proxy string
	// Type is sidecar, router, waypoint or ztunnel.
	Type string
	// Cluster that the proxy runs in, as istiod calls it.
	Cluster string
	// Kinds of resources that are due: CDS, EDS, LDS, RDS, ECDS.
	Kinds []string
	// Said is why it refused them; empty when it said nothing.
	Said string
}

func (l Late) String() string {
	s := fmt.Sprintf("%s (%s) has not acknowledged %s", l.Proxy, l.Type, strings.Join(l.Kinds, ", "))
	if l.Said != "" {
		s += ": it said: " + strings.TrimSpace(l.Said)
	}
	return s
}

// LateError says who had not acknowledged a change when the time was over. Its text is the same for the same state.
type LateError struct {
	// Late are the proxies, those that said why first, then by name.
	Late []Late
	// Unseen are objects that an istiod does not show as they were written, each with the istiod.
	Unseen []string
	// Restless are istiods that never came to rest, although nothing is due.
	Restless []string
	// Unready is why no istiod could be asked at all.
	Unready string
}

// Error names the first of each, and how many others there are.
func (e *LateError) Error() string {
	var parts []string
	if len(e.Late) > 0 {
		parts = append(parts, "proxy "+e.Late[0].String()+others(len(e.Late)-1, "proxies"))
	}
	if len(e.Unseen) > 0 {
		parts = append(parts, e.Unseen[0]+others(len(e.Unseen)-1, "objects"))
	}
	if len(parts) == 0 && len(e.Restless) > 0 {
		parts = append(parts, fmt.Sprintf("%s went on pushing: it is not known whether all have what was written", strings.Join(e.Restless, ", ")))
	}
	if e.Unready != "" {
		parts = append(parts, e.Unready)
	}
	return strings.Join(parts, "; ")
}

func others(n int, of string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d other %s)", n, of)
}

// sorted gives the error's parts one order.
func (e *LateError) sorted() *LateError {
	e.Late = sortLate(e.Late)
	slices.Sort(e.Unseen)
	slices.Sort(e.Restless)
	return e
}

// unaskableError is why an istiod cannot be asked, now or later: a right or a way is missing.
type unaskableError struct{ reason string }

func (e *unaskableError) Error() string { return e.reason }
