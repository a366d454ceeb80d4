package repos_test

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
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

// obj is an object as a pack has it. kind is Git's number: 1 commit, 2 tree, 3 blob, 6 and 7 deltas.
type obj struct {
	kind    byte
	content []byte
	claims  int    // the size in its header, when that is a lie
	base    string // of a delta: 20 bytes of id, or the encoded offset
}

func id(kind string, content []byte) string {
	sum := sha1.Sum(append(fmt.Appendf(nil, "%s %d\x00", kind, len(content)), content...))
	return hex.EncodeToString(sum[:])
}

func packOf(count uint32, objects ...obj) []byte {
	var b bytes.Buffer
	b.WriteString("PACK")
	_ = binary.Write(&b, binary.BigEndian, []uint32{2, count})
	for _, o := range objects {
		n := len(o.content)
		if o.claims != 0 {
			n = o.claims
		}
		header := []byte{o.kind<<4 | byte(n&15)}
		for n >>= 4; n > 0; n >>= 7 {
			header[len(header)-1] |= 0x80
			header = append(header, byte(n&0x7f))
		}
		b.Write(header)
		b.WriteString(o.base)
		z := zlib.NewWriter(&b)
		_, _ = z.Write(o.content)
		_ = z.Close()
	}
	sum := sha1.Sum(b.Bytes())
	return append(b.Bytes(), sum[:]...)
}

func treeOf(entries ...string) []byte { // mode, name, id, mode, …
	var b bytes.Buffer
	for i := 0; i < len(entries); i += 3 {
		raw, _ := hex.DecodeString(entries[i+2])
		fmt.Fprintf(&b, "%s %s\x00%s", entries[i], entries[i+1], raw)
	}
	return b.Bytes()
}

func commitOf(tree string) []byte {
	return fmt.Appendf(nil, "tree %s\nauthor a <a@example.com> 1700000000 +0100\ncommitter a <a@example.com> 1700000000 +0100\n\nx\n", tree)
}

func line(s string) string { return fmt.Sprintf("%04x%s", len(s)+4, s) }

// liar answers with whatever it is told to.
func liar(t *testing.T, refs string, answer func(w io.Writer)) repos.Remote {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/info/refs") {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			_, _ = io.WriteString(w, line("# service=git-upload-pack\n")+"0000"+refs)
			return
		}
		answer(w)
	}))
	t.Cleanup(s.Close)
	return repos.Remote{URL: s.URL + "/x.git"}
}

func refsAt(commit string) string {
	return line(commit+" refs/heads/main\x00side-band-64k ofs-delta shallow\n") + "0000"
}

// sends is an honest frame around any pack.
func sends(pack []byte) func(w io.Writer) {
	return func(w io.Writer) {
		_, _ = io.WriteString(w, "0000"+line("NAK\n"))
		for chunk := range slicesOf(pack, 60_000) {
			_, _ = io.WriteString(w, line("\x01"+string(chunk)))
		}
		_, _ = io.WriteString(w, "0000")
	}
}

func slicesOf(b []byte, n int) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(b) > 0 {
			m := min(n, len(b))
			if !yield(b[:m]) {
				return
			}
			b = b[m:]
		}
	}
}

// Whatever a server sends as a pack, there is an error of the right kind, soon, and nothing is left in the store.
func TestHostilePacks(t *testing.T) {
	t.Parallel()
	blob := []byte("x")
	blobID := id("blob", blob)
	good := treeOf("100644", "f", blobID)
	commit := commitOf(id("tree", good))
	whole := []obj{{kind: 1, content: commit}, {kind: 2, content: good}, {kind: 3, content: blob}}
	garbled := packOf(3, whole...)
	garbled[len(garbled)-1] ^= 1
	// A delta that copies its base twice, and another on that one, and so on.
	grow := func(n int) []byte {
		half := binary.AppendUvarint(nil, uint64(n))
		half = binary.AppendUvarint(half, uint64(2*n))
		for range 2 {
			for left, at := n, 0; left > 0; {
				m := min(left, 1<<16-1)
				half = append(half, 0x80|0x0f|0x30, byte(at), byte(at>>8), byte(at>>16), byte(at>>24), byte(m), byte(m>>8))
				left, at = left-m, at+m
			}
		}
		return half
	}
	var bomb []obj
	content := []byte("0123456789abcdef")
	bomb = append(bomb, obj{kind: 3, content: content})
	for n := len(content); n < 1<<24; n *= 2 {
		raw, _ := hex.DecodeString(id("blob", bytes.Repeat(content, n/len(content))))
		bomb = append(bomb, obj{kind: 7, content: grow(n), base: string(raw)})
	}
	withTree := func(tree []byte) (string, []byte) {
		c := commitOf(id("tree", tree))
		return id("commit", c), packOf(3, obj{kind: 1, content: c}, obj{kind: 2, content: tree}, obj{kind: 3, content: blob})
	}
	commitID := id("commit", commit)
	type hostile struct {
		name   string
		commit string
		pack   []byte
		kind   repos.Kind
		says   string
	}
	cases := []hostile{
		{"honest", commitID, packOf(3, whole...), "", ""},
		{"four thousand million objects", commitID, packOf(1<<32-1, whole...), repos.KindLimit, "4294967295 objects"},
		{"fewer objects than announced", commitID, packOf(4, whole...), repos.KindProtocol, "damaged"},
		{"an object that claims a terabyte", commitID, packOf(1, obj{kind: 3, content: blob, claims: 1 << 40}), repos.KindLimit, "unpacks to more"},
		{"an object longer than it claims", commitID, packOf(1, obj{kind: 3, content: bytes.Repeat(blob, 1<<20), claims: 10}), repos.KindProtocol, "damaged"},
		{"an object shorter than it claims", commitID, packOf(1, obj{kind: 3, content: blob, claims: 10}), repos.KindProtocol, "damaged"},
		{"zeros", commitID, packOf(1, obj{kind: 3, content: make([]byte, 64<<20)}), repos.KindLimit, "unpacks to more"},
		{"deltas that double", commitID, packOf(uint32(len(bomb)), bomb...), repos.KindLimit, "unpacks to more"},
		{"a delta on nothing", commitID, packOf(1, obj{kind: 7, content: grow(16), base: strings.Repeat("x", 20)}), repos.KindProtocol, "without their base"},
		{"a delta before the beginning", commitID, packOf(1, obj{kind: 6, content: grow(16), base: "\x7f"}), repos.KindProtocol, "damaged"},
		{"a delta on itself", commitID, packOf(1, obj{kind: 6, content: grow(16), base: "\x00"}), repos.KindProtocol, "damaged"},
		{"an unknown type", commitID, packOf(1, obj{kind: 5, content: blob}), repos.KindProtocol, "unknown type"},
		{"a wrong checksum", commitID, garbled, repos.KindProtocol, "damaged"},
		{"half a pack", commitID, packOf(3, whole...)[:60], repos.KindProtocol, "damaged"},
		{"no pack", commitID, []byte("<html>"), repos.KindProtocol, "damaged"},
		{"nothing", commitID, nil, repos.KindProtocol, ""},
		{"another commit", commitID, packOf(1, obj{kind: 1, content: commitOf(blobID)}), repos.KindProtocol, "left something out"},
		{"no tree", commitID, packOf(1, whole[:1]...), repos.KindProtocol, "left something out"},
		{"no file", commitID, packOf(2, whole[:2]...), repos.KindProtocol, "left something out"},
	}
	for name, tree := range map[string][]byte{
		"a file named ..":        treeOf("100644", "..", blobID),
		"a file named .":         treeOf("100644", ".", blobID),
		"a file named .git":      treeOf("100644", ".GIT", blobID),
		"a file with a slash":    treeOf("100644", "a/b", blobID),
		"a file without a name":  treeOf("100644", "", blobID),
		"two files of one name":  treeOf("100644", "a", blobID, "100644", "a", blobID),
		"an unknown mode":        treeOf("777", "a", blobID),
		"a tree that is cut off": treeOf("100644", "a", blobID)[:20],
	} {
		c, pack := withTree(tree)
		cases = append(cases, hostile{name, c, pack, repos.KindContent, "tree"})
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			store, dir := open(t, repos.Options{Limits: repos.Limits{TotalBytes: 8 << 20}})
			remote := liar(t, refsAt(c.commit), sends(c.pack))
			within(t, 30*time.Second, func() {
				snap, err := tryPull(t.Context(), store, remote, main)
				if c.kind == "" {
					if err != nil {
						t.Fatal(err)
					}
					read(t, snap.FS(), "f")
					return
				}
				wantKind(t, err, c.kind, c.says)
				if marks := files(t, dir, c.commit); len(marks) > 0 {
					t.Error("the commit is marked as complete")
				}
				for _, name := range files(t, dir, "") {
					if strings.Contains(name, "incoming-") {
						t.Errorf("left behind: %s", name)
					}
				}
			})
		})
	}
}

// The same for everything around the pack.
func TestHostileAnswers(t *testing.T) {
	t.Parallel()
	const commit = someID
	endless := func(begin string) func(w io.Writer) {
		return func(w io.Writer) {
			_, _ = io.WriteString(w, "0000"+line("NAK\n")+line("\x01"+begin))
			for chunk := line("\x01" + strings.Repeat("x", 60_000)); ; {
				if _, err := io.WriteString(w, chunk); err != nil {
					return
				}
			}
		}
	}
	says := func(text string) func(io.Writer) {
		return func(w io.Writer) { _, _ = io.WriteString(w, text) }
	}
	manyRefs := func() string {
		var b strings.Builder
		b.WriteString(line(commit + " refs/heads/main\x00side-band-64k\n"))
		for i := range 600_000 {
			b.WriteString(line(fmt.Sprintf("%s refs/heads/branch-%d\n", commit, i)))
		}
		return b.String() + "0000"
	}
	for _, c := range []struct {
		name   string
		refs   string
		answer func(io.Writer)
		kind   repos.Kind
		says   string
	}{
		{"no pack, without end", refsAt(commit), endless("x"), repos.KindProtocol, "signature"},
		{"a pack without end", refsAt(commit), endless(string(packOf(1, obj{kind: 3, content: []byte("x")}))), repos.KindLimit, "sends more than"},
		{"an error", refsAt(commit), says(line("ERR access denied or repository not exported: /x")), repos.KindNotFound, "not exported"},
		{"not ours", refsAt(commit), says(line("ERR upload-pack: not our ref " + commit)), repos.KindCommitNotFound, ""},
		{"last words", refsAt(commit), says("0000" + line("NAK\n") + line("\x03out of memory\x1b[31m\n")), repos.KindProtocol, "out of memory [31m"},
		{"another band", refsAt(commit), says("0000" + line("NAK\n") + line("\x07?")), repos.KindProtocol, "a pack was expected"},
		{"an end too soon", refsAt(commit), says("0000" + line("NAK\n")), repos.KindUnavailable, "in the middle"},
		{"nothing", refsAt(commit), says(""), repos.KindUnavailable, "in the middle"},
		{"a web page", refsAt(commit), says("<html>log in</html>"), repos.KindProtocol, "garbled"},
		{"refs without end", manyRefs(), says(""), repos.KindLimit, "32 MiB"},
		{"refs that are a web page", "<html>", says(""), repos.KindProtocol, "garbled"},
		{"refs cut off", refsAt(commit)[:50], says(""), repos.KindUnavailable, "list of refs"},
		{"refs of another hash", line(strings.Repeat("0", 40)+" refs/heads/main\x00side-band-64k object-format=sha256\n") + "0000", says(""), repos.KindProtocol, "sha256"},
		{"refs with an error", line("ERR you are not allowed to see this"), says(""), repos.KindAuth, "not allowed"},
		{"no side band", line(commit+" refs/heads/main\x00shallow\n") + "0000", says(""), repos.KindProtocol, "side-band-64k"},
	} {
		t.Run(c.name, func(t *testing.T) {
			store, dir := open(t, repos.Options{Limits: repos.Limits{TotalBytes: 1 << 20}})
			within(t, 30*time.Second, func() {
				_, err := tryPull(t.Context(), store, liar(t, c.refs, c.answer), main)
				wantKind(t, err, c.kind, c.says)
			})
			if left := partial(t, dir); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}
