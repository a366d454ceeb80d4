package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
	"github.com/mooring-dev/mooring/test/gitserver"
	"github.com/mooring-dev/mooring/test/world"
)

// submodule is an entry of .gitmodules.
func submodule(path, url string) string {
	return fmt.Sprintf("[submodule %q]\n\tpath = %s\n\turl = %s\n", path, path, url)
}

// TestSubmodulesAreReadOnRequest takes a repository through all that can become of its submodule.
func TestSubmodulesAreReadOnRequest(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, some("a=1"))
	base := w.Git.Repo(t, s.ns+"-base.git", s.fill(some("b=1")))
	first := s.head()
	u := s.mooring("prod", nil)
	u.inForce(first)

	with := func(commit string) string {
		return s.repo.Commit(gitserver.Change{
			Files: files{".gitmodules": submodule("vendor/base", "../"+s.ns+"-base.git")}, Submodules: map[string]string{"vendor/base": commit},
		})
	}
	second := with(base.Resolve("main"))
	ready(t, u.sync(), metav1.ConditionFalse, v1alpha1.ReasonRenderFailed, "vendor/base", "submodule is not fetched", "set spec.source.recurseSubmodules: true", first+" stays in force")
	s.tamper("a", "by-hand")
	s.becomes("a=1")
	u.edit(func(m *mooring) { m.Spec.Path = "vendor/base" })
	ready(t, u.sync(), metav1.ConditionFalse, v1alpha1.ReasonRenderFailed, "path vendor/base", "set spec.source.recurseSubmodules: true")
	u.edit(func(m *mooring) { m.Spec.Path = "." })

	u.edit(func(m *mooring) { m.Spec.Source.RecurseSubmodules = true })
	u.inForce(second)
	s.want("a=1 b=1")
	s.mustShell("mooring diff prod -n NS")

	// The commit of the submodule is pushed after the one that names it. That is nobody's fault, and is tried again.
	late := base.Commit(gitserver.Change{Branch: "late", Files: s.fill(some("b=2"))})
	base.Delete("refs/heads/late")
	third := with(late)
	ready(t, u.sync(), metav1.ConditionFalse, v1alpha1.ReasonFetchFailed, `submodule "vendor/base" at commit `+late, base.URL, "push it to that repository", second+" stays in force")
	s.tamper("b", "by-hand")
	s.becomes("a=1 b=1")
	base.SetBranch("late", late)
	u.inForceAfterSync(third)
	s.want("a=1 b=2")

	// Elsewhere, nothing is fetched.
	s.commit(files{".gitmodules": submodule("vendor/base", "https://elsewhere.example.com/base.git")})
	ready(t, u.sync(), metav1.ConditionFalse, v1alpha1.ReasonRenderFailed, "elsewhere.example.com", "another server", "../name.git", third+" stays in force")
	s.tamper("b", "by-hand")
	s.becomes("a=1 b=2")
	s.repo.Commit(gitserver.Change{Remove: []string{"vendor", ".gitmodules"}, Files: s.fill(some("b=3"))})
	u.inForceAfterSync(s.head())
	s.want("a=1 b=3")
}

// TestLFSPointersAreNoManifests tells of a pointer where a manifest should be, and minds none elsewhere.
func TestLFSPointersAreNoManifests(t *testing.T) {
	w := shared(t)
	const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
	s := newSite(t, w.World, all(some("a=1"), files{"logo.png": pointer, ".gitattributes": "*.png filter=lfs\n"}))
	u := s.mooring("prod", nil)
	first := s.head()
	u.inForce(first)
	s.commit(files{"b.yaml": pointer})
	ready(t, u.sync(), metav1.ConditionFalse, v1alpha1.ReasonRenderFailed, "b.yaml", "Git LFS pointer", "git lfs migrate export", first+" stays in force")
	s.tamper("a", "by-hand")
	s.becomes("a=1")
	u.inForceAfterSync(s.commit(some("b=1")))
	s.want("a=1 b=1")
}

// TestLimitsOfGit lets a repository grow over each limit. The message names the flag, and with a higher one all is well.
func TestLimitsOfGit(t *testing.T) {
	w := quiet(t)
	agent := startAgent(t, w, world.AgentOptions{Args: []string{"--git-max-entries", "4", "--git-max-file-size", "2Ki", "--git-max-fetch-size", "64Ki"}})
	s := newSite(t, w, some("a=1 b=1"))
	s.repo.Config("uploadpack.allowFilter", "false") // else what is not read does not come
	u := s.mooring("prod", nil)
	first := s.head()
	u.inForce(first)
	over := func(reason string, parts ...string) {
		t.Helper()
		ready(t, u.sync(), metav1.ConditionFalse, reason, append(parts, first+" stays in force")...)
		s.tamper("a", "by-hand")
		s.becomes("a=1 b=1")
	}

	s.commit(some("c=1 d=1 e=1"))
	over(v1alpha1.ReasonFetchFailed, "more than 4 files and folders", "raise --git-max-entries")
	s.repo.SetBranch("main", first)

	s.commit(files{"a.yaml": configMap("a", "2") + strings.Repeat("# long\n", 500)})
	over(v1alpha1.ReasonRenderFailed, "a.yaml", "more than the 2 KiB", "raise --git-max-file-size")
	s.repo.SetBranch("main", first)

	noise := make([]byte, 100<<10)
	if _, err := rand.NewChaCha8([32]byte{}).Read(noise); err != nil {
		t.Fatal(err)
	}
	newest := s.commit(all(some("a=3"), files{"noise.bin": string(noise)}))
	over(v1alpha1.ReasonFetchFailed, "more than 64 KiB", "raise --git-max-fetch-size")

	if err := agent.Stop(); err != nil {
		t.Error(err)
	}
	startAgent(t, w, world.AgentOptions{})
	u.inForce(newest)
	s.want("a=3 b=1")
}
