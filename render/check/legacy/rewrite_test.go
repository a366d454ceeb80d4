package legacy_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/mooring-dev/mooring/render/check/legacy"
)

var update = flag.Bool("update", false, "write what comes out into the archives")

// TestArchives rewrites in.yaml of each archive: out.yaml is what comes of it, and report what was done and what is left.
func TestArchives(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil || len(archive.Files) != 3 {
				t.Fatalf("%v: want in.yaml, out.yaml and report", err)
			}
			out, done, left, err := legacy.Rewrite(archive.Files[0].Data)
			if err != nil {
				t.Fatal(err)
			}
			var report strings.Builder
			for _, d := range done {
				fmt.Fprintf(&report, "%d %s: %s: %s; %s (broken %v, unknown %v)\n", d.Line, d.Object, d.Path, d.Message, d.Mend, d.Broken, d.Unknown)
			}
			for _, d := range left {
				fmt.Fprintf(&report, "left: %d %s: %s: %s; %s; because %s (broken %v, unknown %v)\n", d.Line, d.Object, d.Path, d.Message, d.Mend, d.Why, d.Broken, d.Unknown)
				report.WriteString(d.YAML)
			}
			if *update {
				archive.Files[1].Data, archive.Files[2].Data = out, []byte(report.String())
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(archive.Files[1].Data), string(out)); diff != "" {
				t.Errorf("out.yaml (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(string(archive.Files[2].Data), report.String()); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
			again, more, _, err := legacy.Rewrite(out)
			if err != nil || len(more) > 0 || !bytes.Equal(again, out) {
				t.Errorf("a second run changes %v (%v):\n%s", more, err, again)
			}
		})
	}
}

func TestRewriteRefuses(t *testing.T) {
	data := []byte("kind: a\n---\napiVersion: networking.istio.io/v1\nkind: [\n")
	out, _, _, err := legacy.Rewrite(data)
	if err == nil || !strings.Contains(err.Error(), "line 2") || !bytes.Equal(out, data) {
		t.Errorf("%v, and gives\n%s", err, out)
	}
}

// FuzzRewrite: whatever comes in, what comes out can be read, a second run changes nothing, and nothing panics.
func FuzzRewrite(f *testing.F) {
	paths, _ := filepath.Glob("testdata/*.txtar")
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(archive.Files[0].Data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		out, done, _, err := legacy.Rewrite(data)
		if err != nil || len(done) == 0 {
			if !bytes.Equal(out, data) {
				t.Fatal("nothing was done, and the text is another")
			}
			return
		}
		again, more, _, err := legacy.Rewrite(out)
		if err != nil || len(more) > 0 || !bytes.Equal(again, out) {
			t.Fatalf("a second run changes %v (%v)\nin:\n%s\nout:\n%s\nagain:\n%s", more, err, data, out, again)
		}
	})
}
