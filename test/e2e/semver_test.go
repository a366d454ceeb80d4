package e2e_test

import (
	"strings"
	"testing"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
	"github.com/mooring-dev/mooring/test/world"
)

// TestSemver follows a range of tags: to the highest one in it, to a higher one when it is pushed, and never out of it.
func TestSemver(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, some("a=1"))
	s.repo.Tag("v1.9.0", "main", "")
	tag := func(name, value string) string {
		id := s.commit(some("a=" + value))
		s.repo.Tag(name, "main", "annotated")
		return id
	}
	ten := tag("v1.10.0", "10")
	u := s.mooring("releases", func(m *mooring) { m.Spec.Source.Ref = v1alpha1.Ref{Semver: "1.x"} })
	if m := u.inForce(ten); m.Status.LastAppliedRevision != "v1.10.0@sha1:"+ten {
		t.Errorf("revision is %s, want v1.10.0@sha1:%s", m.Status.LastAppliedRevision, ten)
	}
	s.want("a=10")

	tag("v2.0.0", "20")
	tag("v1.11.0-rc.1", "11rc")
	s.commit(some("a=main"))
	u.sync()
	s.want("a=10")
	eleven := tag("v1.11.0", "11")
	if m := u.sync(); m.Status.LastAppliedRevision != "v1.11.0@sha1:"+eleven {
		t.Errorf("revision is %s, want v1.11.0@sha1:%s", m.Status.LastAppliedRevision, eleven)
	}
	s.want("a=11")

	// A range that holds nothing leaves the cluster as it is and says what there is.
	u.edit(func(m *mooring) { m.Spec.Source.Ref.Semver = ">=3" })
	m := u.until("the range is found empty", world.HasReason(v1alpha1.ReasonFetchFailed))
	if c := world.Ready(m).Message; !strings.Contains(c, `the range ">=3"`) || !strings.Contains(c, "v2.0.0, v1.11.0") {
		t.Errorf("Ready says %q, want the range and the versions", c)
	}
	s.want("a=11")
}
