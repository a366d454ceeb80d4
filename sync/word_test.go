package sync_test

import (
	"testing"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/sync"
)

func TestWordCoversOneRevisionAndSoManyDeletes(t *testing.T) {
	b := rev("b")
	for _, c := range []struct {
		word      string
		confirmed bool
		deletes   int
	}{
		{"", false, 0},
		{",deletes=3", false, 0},
		{rev("a").String(), false, 0},
		{b.String(), true, 0},
		{string(b.Commit), true, 0},
		{b.String() + ",deletes=30", true, 30},
		{string(b.Commit) + ",deletes=1", true, 1},
		{rev("a").String() + ",deletes=30", false, 0},
		{b.String() + ",deletes=0", false, 0},
		{b.String() + ",deletes=-1", false, -1},
		{b.String() + ",deletes=all", false, 0},
		{b.String() + ",delete=30", false, 0},
		{string(b.Commit)[:10], false, 0}, // an abbreviation may be another commit's one day
	} {
		if confirmed, deletes := sync.Covers(c.word, b); confirmed != c.confirmed || confirmed && deletes != c.deletes {
			t.Errorf("%q: %v %d, want %v %d", c.word, confirmed, deletes, c.confirmed, c.deletes)
		}
	}
}

func TestWordIsUsedOnce(t *testing.T) {
	a, b, c := rev("a"), rev("b"), rev("c")
	for _, one := range []struct {
		name, word  string
		before, now repos.Revision
		want        bool
	}{
		{"none", "", a, b, false},
		{"its revision came into force", b.String(), a, b, true},
		{"with a number", b.String() + ",deletes=3", a, b, true},
		{"its revision is in force already", string(b.Commit), b, b, true},
		{"another came into force in its place", b.String(), a, c, true},
		{"it is given before the commit is seen", b.String(), a, a, false},
	} {
		if got := sync.Used(one.word, one.before, one.now); got != one.want {
			t.Errorf("%s: %v, want %v", one.name, got, one.want)
		}
	}
}
