package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/sync"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
	"github.com/mooring-dev/mooring/test/gitserver"
	"github.com/mooring-dev/mooring/test/kube"
)

// patience is how long a script waits for something that should be there within a second or two.
const patience = time.Minute

// TestCluster runs what needs a cluster and no agent. The scripts run side by side, each in a namespace of its own; where
// one needs an agent's answer, the script gives it itself, with the command answer.
func TestCluster(t *testing.T) {
	testscript.Run(t, newStage(t).params("testdata/cluster/*.txtar"))
}

// TestAgent runs what needs an agent. An agent keeps all Moorings of the cluster, so these scripts run after the others and
// there is one of them.
func TestAgent(t *testing.T) {
	testscript.Run(t, newStage(t).params("testdata/agent/*.txtar"))
}

// TestRestart takes the API server away while a command waits; nobody else may be using it then.
func TestRestart(t *testing.T) {
	s := newStage(t)
	p := s.params("testdata/restart/*.txtar")
	p.Cmds["restart"] = func(ts *testscript.TestScript, _ bool, _ []string) {
		ts.Check(s.cluster.RestartAPIServer(t.Context()))
	}
	testscript.Run(t, p)
}

// stage is the API server and the Git server that scripts share.
type stage struct {
	t       *testing.T
	cluster *kube.Cluster
	git     *gitserver.Server
	client  client.Client
}

func newStage(t *testing.T) *stage {
	ctrl.SetLogger(logr.Discard())
	cluster := kube.Start(t)
	c, err := client.New(cluster.Config(), client.Options{Scheme: sync.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return &stage{t: t, cluster: cluster, git: gitserver.HTTP(t, gitserver.HTTPOptions{}), client: c}
}

func (s *stage) params(pattern string) testscript.Params {
	p := params(s.setup, pattern)
	p.Cmds["answer"] = s.answer
	p.Cmds["push"] = s.push
	p.Cmds["fill"] = fill
	p.Cmds["applyset"] = func(ts *testscript.TestScript, _ bool, args []string) { // ID is that of the Mooring of this name
		ts.Setenv("ID", apply.ApplySetID(args[0], ts.Getenv("NS"), v1alpha1.Kind, v1alpha1.GroupVersion.Group))
	}
	return p
}

// setup gives a script a namespace, a kubeconfig whose context is in it, kubectl, and the address of its repository.
func (s *stage) setup(env *testscript.Env) error {
	namespace := s.cluster.Namespace(s.t)
	config, err := clientcmd.LoadFromFile(s.cluster.Kubeconfig())
	if err != nil {
		return err
	}
	config.Contexts[config.CurrentContext].Namespace = namespace
	kubeconfig := filepath.Join(env.WorkDir, ".kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		return err
	}
	env.Setenv("KUBECONFIG", kubeconfig)
	env.Setenv("KUBECACHEDIR", filepath.Join(env.WorkDir, ".kube-cache"))
	env.Setenv("APISERVER", s.cluster.Config().Host)
	env.Setenv("NS", namespace)
	env.Setenv("REPO", s.git.RepoURL(namespace+".git"))
	env.Setenv("PATH", filepath.Dir(s.cluster.KubectlPath())+string(os.PathListSeparator)+env.Getenv("PATH"))
	return nil
}

// push makes a folder the whole content of the script's repository, as one commit on main: push DIR. The commit's id is in
// the variable COMMIT afterwards.
func (s *stage) push(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: push DIR")
	}
	dir := filepath.Join(s.git.Root, ts.Getenv("NS")+".git")
	repo := &gitserver.Repo{Dir: dir}
	if _, err := os.Stat(dir); err != nil {
		repo, err = gitserver.InitRepo(s.t.Context(), dir)
		ts.Check(err)
	}
	files, err := gitserver.FilesOf(ts.MkAbs(args[0]))
	ts.Check(err)
	commit, err := repo.Commit(s.t.Context(), gitserver.Change{Message: "change", Files: files, Replace: true})
	ts.Check(err)
	ts.Setenv("COMMIT", commit)
}

// fill writes the script's namespace and the address of its repository into files: fill FILE...
func fill(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: fill FILE...")
	}
	values := strings.NewReplacer("@NS@", ts.Getenv("NS"), "@REPO@", ts.Getenv("REPO"), "@ID@", ts.Getenv("ID"))
	for _, file := range args {
		ts.Check(os.WriteFile(ts.MkAbs(file), []byte(values.Replace(ts.ReadFile(file))), 0o644))
	}
}

// answer plays the agent for one pass: it waits until somebody asked for one and writes how it ended.
// answer NAME STATUS REASON MESSAGE.
func (s *stage) answer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: answer NAME STATUS REASON MESSAGE")
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	for {
		err := s.tryAnswer(ctx, client.ObjectKey{Namespace: ts.Getenv("NS"), Name: args[0]}, args[1], args[2], args[3])
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			ts.Fatalf("answer: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s *stage) tryAnswer(ctx context.Context, key client.ObjectKey, status, reason, message string) error {
	m := &v1alpha1.Mooring{}
	if err := s.client.Get(ctx, key, m); err != nil {
		return err
	}
	asked := m.Annotations[v1alpha1.ReconcileAnnotation]
	ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady)
	progressing := ready != nil && ready.Status == metav1.ConditionUnknown
	if asked == "" || asked == m.Status.LastHandledReconcileAt && !progressing {
		return fmt.Errorf("nobody asked for a pass over Mooring %s", key)
	}
	m.Status.LastHandledReconcileAt = asked
	meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionStatus(status), Reason: reason, Message: message,
	})
	return s.client.Status().Update(ctx, m)
}
