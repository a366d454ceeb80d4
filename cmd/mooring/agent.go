package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/mooring-dev/mooring/sync"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

type agentOptions struct {
	sync.AgentOptions
	cluster   *clusterFlags
	logLevel  string
	logFormat string
}

func (c *cli) agentCommand() *cobra.Command {
	o := &agentOptions{}
	cmd := &cobra.Command{
		Use:     "agent",
		GroupID: groupCluster,
		Short:   "Keep all Moorings of a cluster; what the Deployment in the cluster runs",
		Long: `Keep all Moorings of a cluster until SIGINT or SIGTERM. What is being applied then is
brought to an end in order. A second signal ends it at once, which does no harm either: after
a restart the agent finds out from Git and from the cluster where it was.

` + clusterHelp + `
Exit code: 0 it was asked to end, 1 error (also when another agent took the leadership), 2 wrong usage.`,
		Args: args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return c.agent(cmd.Context(), o) },
	}
	o.cluster = c.addClusterFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.StoreDir, "store", "/var/lib/mooring", "folder for fetched commits; it can be lost at any time, and what is missing is fetched again")
	f.StringVar(&o.MetricsAddr, "metrics-bind-address", ":8080", "`address` of /metrics for Prometheus; 0 switches it off")
	f.StringVar(&o.ProbeAddr, "health-probe-bind-address", ":8081", "`address` of /healthz and /readyz; 0 switches them off")
	f.StringVar(&o.PprofAddr, "pprof-bind-address", "0", "`address` of /debug/pprof for go tool pprof, such as 127.0.0.1:6060; whoever reaches it sees what the agent has in memory. 0 switches it off")
	f.BoolVar(&o.LeaderElect, "leader-elect", false, "let several agents run, of which one works")
	f.StringVar(&o.LeaderNamespace, "leader-election-namespace", "", "`namespace` of the lease; default is the one that the agent runs in")
	f.StringSliceVar(&o.AlarmsAcross, "alarms-across", nil, "`namespace` whose Alarms may tell of Moorings of other namespaces, * for all; once for each. Default is the namespace that the agent runs in")
	f.StringVar(&o.Shard, "shard", "", "work for the Moorings and Alarms with the label "+v1alpha1.ShardLabel+" of this `name` alone; default is those without the label. Each shard has its own leader")
	f.IntVar(&o.Concurrent, "concurrent", 0, "how many Moorings are worked for at a time; 0 leaves it to the agent")
	addGitFlags(f, &o.Options)
	f.StringSliceVar(&o.Istiod.URLs, "istiod-url", nil, "`address` of an istiod for Moorings with spec.propagation.ask: Service, such as http://istiod.istio-system:15014; once for each istiod. Without it each of istiod's Pods is asked")
	f.StringVar(&o.Istiod.TokenFile, "istiod-token-file", "", "`file` with a token of the audience istio-ca, which istiod wants to see then")
	f.Var(choice(&o.logLevel, "info", "debug", "warn", "error"), "log-level", "the least important messages that are logged: debug, info, warn, error")
	f.Var(choice(&o.logFormat, "json", "text"), "log-format", "form of the log on standard error: json, text")
	completeChoices(cmd, "log-level", "debug", "info", "warn", "error")
	completeChoices(cmd, "log-format", "json", "text")
	_ = cmd.MarkFlagDirname("store")
	return cmd
}

func (c *cli) agent(ctx context.Context, o *agentOptions) error {
	if o.Concurrent < 0 {
		return usageErrorf("mooring agent", "--concurrent is %d, and cannot be less than nothing", o.Concurrent)
	}
	log := newLogger(c.errOut, o.logLevel, o.logFormat)
	// Libraries that know only klog, or only the default logger of slog, write to the same place in the same form.
	klog.SetLogger(log)
	slog.SetDefault(slog.New(logr.ToSlogHandler(log)))
	cfg, err := o.cluster.config()
	if err != nil {
		return err
	}
	// What a start or a large commit leaves behind is several times what the agent keeps. To collect it sooner costs little at rest.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
	if o.PprofAddr == "0" {
		runtime.MemProfileRate = 0 // nobody can ask for a profile, and to keep one takes a few MiB
	}
	// Some services that Alarms send to wait for an answer as long as this client does. Nothing else in the agent uses it.
	http.DefaultClient.Timeout = time.Minute
	cfg.WarningHandler = nil // warnings of the API server go to the log
	o.Version = c.version
	log.Info("agent starts", "version", c.version, "cluster", cfg.Host, "store", o.StoreDir)
	err = sync.RunAgent(ctx, cfg, log, o.AgentOptions)
	if err != nil && !(errors.Is(err, context.Canceled) && ctx.Err() != nil) {
		err = fmt.Errorf("run the agent: %w", err)
		var file *fs.PathError
		if errors.As(err, &file) {
			err = withHint(err, "--store names a folder that this user may make and write: %s", o.StoreDir)
		}
		return err
	}
	log.Info("agent ends")
	return nil
}

// newLogger writes structured lines. logr's V(1) is slog's debug; what is chattier than that is dropped.
func newLogger(w io.Writer, level, format string) logr.Logger {
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	options := &slog.HandlerOptions{Level: levels[level]}
	if format == "text" {
		return logr.FromSlogHandler(slog.NewTextHandler(w, options))
	}
	return logr.FromSlogHandler(slog.NewJSONHandler(w, options))
}
