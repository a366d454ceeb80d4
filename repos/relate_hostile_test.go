package repos_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mooring-dev/mooring/repos"
)

// child is a commit with parents, and its id.
func child(message string, parents ...string) (content []byte, commit string) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\n", id("tree", nil))
	for _, p := range parents {
		fmt.Fprintf(&b, "parent %s\n", p)
	}
	fmt.Fprintf(&b, "author a <a@example.com> 1700000000 +0100\ncommitter a <a@example.com> 1700000000 +0100\n\n%s\n", message)
	return b.Bytes(), id("commit", b.Bytes())
}

// rewrite is a delta that makes target out of any base of this length, copying nothing.
func rewrite(base int, target []byte) []byte {
	delta := binary.AppendUvarint(nil, uint64(base))
	delta = binary.AppendUvarint(delta, uint64(len(target)))
	for chunk := range slicesOf(target, 100) {
		delta = append(append(delta, byte(len(chunk))), chunk...)
	}
	return delta
}

func raw(id string) string {
	b, _ := hex.DecodeString(id)
	return string(b)
}

// historian answers each question with the pack for the commit that is wanted, whatever the other side has.
func historian(t *testing.T, packs map[string][]byte) repos.Remote {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/info/refs") {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			_, _ = io.WriteString(w, line("# service=git-upload-pack\n")+"0000"+refsAt(someID))
			return
		}
		request, _ := io.ReadAll(r.Body)
		pack, ok := packs[string(request[len("0000want "):][:40])]
		if !ok {
			_, _ = io.WriteString(w, line("ERR upload-pack: not our ref"))
			return
		}
		_, _ = io.WriteString(w, line("NAK\n"))
		for chunk := range slicesOf(pack, 60_000) {
			_, _ = io.WriteString(w, line("\x01"+string(chunk)))
		}
		_, _ = io.WriteString(w, "0000")
	}))
	t.Cleanup(s.Close)
	return repos.Remote{URL: s.URL + "/x.git"}
}

// A server that does not consider what we have, and sends everything, is understood too; and so is every form of pack.
func TestRelateFormsOfPacks(t *testing.T) {
	t.Parallel()
	root, a := child("a")
	middle, b := child("b", a)
	tip, c := child("c", b)
	side, d := child("d", a)
	blob := []byte("a blob")
	whole := func(contents ...[]byte) []byte {
		var all []obj
		for _, content := range contents {
			all = append(all, obj{kind: 1, content: content})
		}
		return packOf(uint32(len(all)), all...)
	}
	packs := map[string][]byte{a: whole(root), b: whole(middle, root), c: whole(tip, middle, root), d: whole(side, root)}
	for _, pair := range []struct {
		from, to string
		want     repos.Relation
	}{{a, c, repos.Ahead}, {c, a, repos.Behind}, {b, d, repos.Diverged}, {d, c, repos.Diverged}, {b, c, repos.Ahead}} {
		store, _ := open(t, repos.Options{})
		got, err := store.Relate(t.Context(), historian(t, packs), repos.Commit(pair.from), repos.Commit(pair.to))
		if err != nil || got != pair.want {
			t.Errorf("%s to %s: %s, %v; want %s", pair.from, pair.to, got, err, pair.want)
		}
	}

	first := obj{kind: 1, content: middle}
	header := len(packOf(1, first)) - 20 - 12 // how long the first object is in its pack
	offset := string([]byte{byte((header-128)>>7 | 0x80), byte(header & 0x7f)})
	if header < 128 {
		offset = string([]byte{byte(header)})
	}
	for name, pack := range map[string][]byte{
		"a delta on the one before": packOf(2, first, obj{kind: 6, content: rewrite(len(middle), tip), base: offset}),
		"a delta by id":             packOf(2, first, obj{kind: 7, content: rewrite(len(middle), tip), base: raw(b)}),
		"a delta before its base":   packOf(2, obj{kind: 7, content: rewrite(len(middle), tip), base: raw(b)}, first),
		"a chain of deltas before their base": packOf(3, obj{kind: 7, content: rewrite(len(root), middle), base: raw(a)},
			obj{kind: 7, content: rewrite(len(middle), tip), base: raw(b)}, obj{kind: 1, content: root}),
		"files and deltas on files": packOf(5, obj{kind: 3, content: blob}, obj{kind: 1, content: tip}, obj{kind: 7, content: rewrite(len(blob), []byte("x")), base: raw(id("blob", blob))},
			first, obj{kind: 4, content: []byte("tag")}),
		"a commit twice": packOf(4, first, first, obj{kind: 1, content: tip}, obj{kind: 1, content: tip}),
	} {
		store, _ := open(t, repos.Options{})
		got, err := store.Relate(t.Context(), historian(t, map[string][]byte{c: pack}), repos.Commit(a), repos.Commit(c))
		if err != nil || got != repos.Ahead {
			t.Errorf("%s: %s, %v; want Ahead", name, got, err)
		}
	}
}

// Whatever a server sends, there is an error of the right kind, soon; and never is a commit ahead that was not shown to be.
func TestRelateHostilePacks(t *testing.T) {
	t.Parallel()
	_, a := child("a")
	middle, b := child("b", a)
	tip, c := child("c", b)
	other, _ := child("a commit that nobody asked for", a)
	garbled := packOf(2, obj{kind: 1, content: tip}, obj{kind: 1, content: middle})
	garbled[len(garbled)-1] ^= 1
	broken := bytes.Replace(tip, []byte("parent "+b), []byte("parent "+strings.Repeat("../", 20)), 1)
	huge := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(len(tip))), 1<<40)
	for _, c2 := range []struct {
		name string
		pack []byte
		kind repos.Kind
		says string
	}{
		{"too many objects", packOf(1<<32-1, obj{kind: 1, content: tip}), repos.KindProtocol, "damaged"},
		{"a wrong checksum", garbled, repos.KindProtocol, "damaged"},
		{"half a pack", garbled[:40], repos.KindProtocol, "damaged"},
		{"no pack", []byte("<html>"), repos.KindProtocol, "damaged"},
		{"a commit that claims a terabyte", packOf(1, obj{kind: 1, content: tip, claims: 1 << 40}), repos.KindLimit, "unpacks to more"},
		{"a commit of five megabytes", packOf(1, obj{kind: 1, content: bytes.Repeat(tip, 5<<20/len(tip))}), repos.KindLimit, "a commit has more than 4 MiB"},
		{"a commit longer than it claims", packOf(1, obj{kind: 1, content: tip, claims: 10}), repos.KindProtocol, "damaged"},
		{"zeros", packOf(1, obj{kind: 3, content: make([]byte, 64<<20)}), repos.KindLimit, "unpacks to more"},
		{"a parent that is no id", packOf(1, obj{kind: 1, content: broken}), repos.KindProtocol, "its parent is"},
		{"a delta that makes a terabyte", packOf(2, obj{kind: 1, content: tip}, obj{kind: 7, content: huge, base: raw(c)}), repos.KindLimit, "delta that makes"},
		{"a delta before the beginning", packOf(1, obj{kind: 6, content: huge, base: "\x7f"}), repos.KindProtocol, "damaged"},
		{"another commit", packOf(1, obj{kind: 1, content: other}), repos.KindCommitNotFound, a},
		{"a gap", packOf(2, obj{kind: 1, content: tip}, obj{kind: 1, content: other}), repos.KindCommitNotFound, a},
	} {
		t.Run(c2.name, func(t *testing.T) {
			store, dir := open(t, repos.Options{Limits: repos.Limits{TotalBytes: 32 << 20}})
			within(t, 30*time.Second, func() {
				relation, err := store.Relate(t.Context(), historian(t, map[string][]byte{c: c2.pack, someID: packOf(0)}), repos.Commit(a), repos.Commit(c))
				wantKind(t, err, c2.kind, c2.says)
				if relation != "" {
					t.Errorf("relation is %s beside an error", relation)
				}
			})
			if left := partial(t, dir); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}
