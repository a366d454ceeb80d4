package deletes_test

import (
	"slices"
	"strings"
	"testing"
)

// A proof that finds nothing may be one that cannot. These sequences hold a step that does by hand what a wrong agent would do. The judges name it,
// and of all steps those are left that are needed for it.
func TestFaultsAreFound(t *testing.T) {
	s := newStage(t)
	for _, planted := range []struct {
		name, object, want string
		verb               verb
		needs              sequence
	}{
		{
			"deleted and made anew", "ConfigMap/a", "wrongly deleted: DELETED ConfigMap/", sabotage,
			sequence{{verb: add, object: "ConfigMap/a"}, {verb: pass}},
		},
		{
			"namespace deleted", "Namespace/more", "a definition was deleted: ", sabotage,
			sequence{{verb: add, object: "Namespace/more"}, {verb: pass}},
		},
		{"made, and nobody would look for it", "Gadget/planted", "left over: ", plant, nil},
		{
			"lost", "Secret/s", "untracked: ", strip,
			sequence{{verb: add, object: "Secret/s"}, {verb: pass}},
		},
	} {
		t.Run(planted.name, func(t *testing.T) {
			t.Parallel()
			all := sequence{{verb: add, unit: 1, object: "ConfigMap/b"}, {verb: pass, unit: 1}}
			all = append(append(all, planted.needs...), op{verb: planted.verb, object: planted.object})
			all = append(all, op{verb: restart}, op{verb: pass, unit: 1})
			faults, told, err := s.trial(t, all)
			if err != nil {
				t.Fatal(err)
			}
			named := func(f string) bool { return strings.HasPrefix(f, planted.want) }
			if !slices.ContainsFunc(faults, named) {
				t.Fatalf("the judges do not say %q; they say:\n%s\nof:\n%s", planted.want, strings.Join(faults, "\n"), strings.Join(told, "\n"))
			}
			small, faults, _ := s.minimise(t, all, faults, told)
			if want := len(planted.needs) + 1; len(small) != want || len(faults) == 0 {
				t.Errorf("%d steps are left, want the %d that are needed:\n%s", len(small), want, small)
			}
		})
	}
}
