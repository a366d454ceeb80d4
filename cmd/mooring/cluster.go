package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // the ways to sign in that a kubeconfig may name
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// completionPatience bounds a request that the shell makes while somebody holds the Tab key.
const completionPatience = 3 * time.Second

// clusterFlags are kubectl's flags that say which cluster, which namespace, and who asks.
type clusterFlags struct {
	*genericclioptions.ConfigFlags
	cli *cli
}

// commonFlags of kubectl are shown in help; the others work and are not shown.
var commonFlags = []string{"kubeconfig", "context", "namespace", "as", "as-group"}

// clusterHelp is what help says about the flags that it does not list.
const clusterHelp = "The other flags of kubectl that say how to reach a cluster (--server, --token, --as-uid, …) work too."

// addClusterFlags gives a command kubectl's flags. They are a command's own rather than everybody's, because render and
// check need no cluster and should not look as if they did.
func (c *cli) addClusterFlags(cmd *cobra.Command) *clusterFlags {
	f := &clusterFlags{ConfigFlags: genericclioptions.NewConfigFlags(true), cli: c}
	f.CacheDir = nil // discovery is not cached on disk
	all := pflag.NewFlagSet("cluster", pflag.ContinueOnError)
	f.AddFlags(all)
	all.Lookup("namespace").Usage = "the namespace; default is the one of the kubeconfig's context"
	all.Lookup("kubeconfig").Usage = "path to the kubeconfig; default is the variable KUBECONFIG, then ~/.kube/config, then the cluster that this runs in"
	all.Lookup("context").Usage = "the kubeconfig's context"
	all.Lookup("as").Usage = "act as this user"
	all.Lookup("as-group").Usage = "act as a member of this group; can be repeated"
	all.VisitAll(func(flag *pflag.Flag) { flag.Hidden = !slices.Contains(commonFlags, flag.Name) })
	cmd.Flags().AddFlagSet(all)
	_ = cmd.RegisterFlagCompletionFunc("namespace", cobra.NoFileCompletions)
	return f
}

// noCluster is where client-go looks for a cluster when nothing names one.
const noCluster = "http://localhost:8080"

const nameCluster = "name a cluster with --kubeconfig, --context or the variable KUBECONFIG"

// config of the cluster that the flags name.
func (f *clusterFlags) config() (*rest.Config, error) {
	cfg, err := f.ToRESTConfig()
	if err != nil {
		hint := nameCluster
		if *f.Context != "" {
			hint = "kubectl config get-contexts lists the contexts that there are"
		}
		return nil, withHint(fmt.Errorf("find the cluster: %w", err), "%s", hint)
	}
	if cfg.Host == noCluster && *f.APIServer == "" && f.cli.getenv("KUBERNETES_MASTER") == "" {
		// The library's answer to having no kubeconfig at all; nobody has a cluster there without saying so.
		return nil, withHint(errors.New("find the cluster: there is no kubeconfig"), "%s", nameCluster)
	}
	// The API server's own fairness is limit enough; a second limit here makes a plan of a thousand objects slow.
	cfg.QPS = -1
	cfg.UserAgent = "mooring/" + f.cli.version
	cfg.WarningHandler = rest.NewWarningWriter(f.cli.errOut, rest.WarningWriterOptions{Deduplicate: true})
	return cfg, nil
}

// cluster is a connection to the Moorings of a cluster.
type cluster struct {
	client.WithWatch
	config *rest.Config
	// namespace that the user is in.
	namespace string
}

func (f *clusterFlags) connect() (*cluster, error) {
	cfg, err := f.config()
	if err != nil {
		return nil, err
	}
	namespace, _, err := f.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, fmt.Errorf("find the namespace: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	// Our own kinds are asked for, and it is known where they live: no discovery, so that a dead APIService of somebody else
	// is no reason not to answer.
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1alpha1.GroupVersion})
	mapper.Add(v1alpha1.GroupVersion.WithKind(v1alpha1.Kind), meta.RESTScopeNamespace)
	mapper.Add(v1alpha1.GroupVersion.WithKind(v1alpha1.AlarmKind), meta.RESTScopeNamespace)
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return &cluster{WithWatch: c, config: cfg, namespace: namespace}, nil
}

// mooring reads one Mooring of the namespace that the user is in.
func (c *cluster) mooring(ctx context.Context, name string) (*v1alpha1.Mooring, error) {
	m := &v1alpha1.Mooring{}
	err := c.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, m)
	switch {
	case err == nil:
		m.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))
		return m, nil
	case isNoCRD(err):
		return nil, noCRD()
	case apierrors.IsNotFound(err):
		return nil, withHint(fmt.Errorf("get Mooring %s/%s: there is none", c.namespace, name), "%s", c.elsewhere(ctx, name))
	}
	return nil, fmt.Errorf("get Mooring %s/%s: %w", c.namespace, name, err)
}

// elsewhere is the next step for somebody whose Mooring is not in the namespace that they are in.
func (c *cluster) elsewhere(ctx context.Context, name string) string {
	all, err := c.moorings(ctx, "")
	if err != nil {
		return "mooring get lists those of the namespace; another namespace is chosen with --namespace"
	}
	var namespaces []string
	for _, m := range all {
		if m.Name == name {
			namespaces = append(namespaces, m.Namespace)
		}
	}
	if len(namespaces) > 0 {
		return fmt.Sprintf("there is one of that name in %s: add --namespace %s", strings.Join(namespaces, ", "), namespaces[0])
	}
	return "mooring get -A lists all that there are"
}

// moorings lists those of a namespace, or of all for an empty one, sorted by namespace and name.
func (c *cluster) moorings(ctx context.Context, namespace string) ([]v1alpha1.Mooring, error) {
	list := &v1alpha1.MooringList{}
	err := c.List(ctx, list, client.InNamespace(namespace))
	switch {
	case isNoCRD(err):
		return nil, noCRD()
	case err != nil && namespace == "":
		return nil, fmt.Errorf("list the Moorings of all namespaces: %w", err)
	case err != nil:
		return nil, fmt.Errorf("list the Moorings of namespace %s: %w", namespace, err)
	}
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.Mooring) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return list.Items, nil
}

// isNoCRD tells the absence of the kind from the absence of an object: for a path that it does not know, the API server's
// answer is no Status of its own.
func isNoCRD(err error) bool {
	return meta.IsNoMatchError(err) ||
		apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

func noCRD() error {
	return withHint(fmt.Errorf("the cluster has no kind Mooring"),
		"install Mooring with kubectl apply -k deploy, or choose another cluster with --context")
}

// completeNames offers the names of Moorings to the shell. A completion says nothing about errors: it has no place for them.
func (f *clusterFlags) completeNames(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
	defer cancel()
	c, err := f.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	all, err := c.moorings(ctx, c.namespace)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []cobra.Completion
	for _, m := range all {
		if !slices.Contains(args, m.Name) {
			names = append(names, cobra.CompletionWithDesc(m.Name, completionText(&m)))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completionText is what the shell shows beside a name.
func completionText(m *v1alpha1.Mooring) string {
	if m.Spec.Suspend {
		return v1alpha1.ReasonSuspended
	}
	if ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		return ready.Reason
	}
	return ""
}

// completeOneName offers names for a command that takes one.
func (f *clusterFlags) completeOneName(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return f.completeNames(cmd, args, toComplete)
}
