package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/sync"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

func (c *cli) getWindowsCommand() *cobra.Command {
	o := &getOptions{}
	cmd := &cobra.Command{
		Use:   "windows [NAME...]",
		Short: "Show when new commits are taken up: windows and schedules, now and next",
		Long: `Show of each Mooring that has spec.windows or spec.schedule whether new commits may be applied
now, by which window that is so, when it is open and closed next, and at which time Git is asked
for new commits next and was asked last. Drift is corrected all the time.

The times are in the time zone of the window or schedule. A dash stands for what is not in
sight. "mooring sync NAME --override-window REASON" applies the newest commit although a window is
closed.

` + clusterHelp + "\n" + exitHelp,
		Example: `  mooring get windows -A
  mooring get windows prod -n mesh
  mooring get windows -o json`,
		RunE: func(cmd *cobra.Command, names []string) error {
			found, err := c.find(cmd, o, names)
			if err != nil {
				return err
			}
			return c.printWindows(o, found, time.Now())
		},
	}
	o.cluster = c.addClusterFlags(cmd)
	cmd.ValidArgsFunction = o.cluster.completeNames
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "the Moorings of all namespaces")
	addOutputFlag(cmd, &o.output, outputTable, outputJSON, outputYAML)
	return cmd
}

// jsonWindows is the timetable of one Mooring as JSON and YAML. Its names are a promise to the scripts that read it.
type jsonWindows struct {
	Mooring string `json:"mooring"`
	// Open is true when a new commit may be applied now; also where there are no windows.
	Open bool `json:"open"`
	// Suspended is true where nothing at all is done, whatever windows say.
	Suspended bool `json:"suspended,omitempty"`
	// Window that makes it so; none where no window is on.
	Window *jsonWindow  `json:"window,omitempty"`
	Opens  *metav1.Time `json:"opens,omitempty"`
	Closes *metav1.Time `json:"closes,omitempty"`
	// Schedule of the questions to Git; none where they are asked at each interval.
	Schedule string       `json:"schedule,omitempty"`
	NextSlot *metav1.Time `json:"nextSlot,omitempty"`
	LastSlot *metav1.Time `json:"lastSlot,omitempty"`
	// Error of the spec, for which no new commit is taken up.
	Error string `json:"error,omitempty"`
}

type jsonWindow struct {
	// Index in spec.windows.
	Index int `json:"index"`
	v1alpha1.Window
}

// windowsOf a Mooring at an instant, and the row that tells it; none where there is neither a window nor a schedule.
func windowsOf(m *v1alpha1.Mooring, now time.Time, color palette) (jsonWindows, []cell, bool) {
	if m.Spec.Schedule == "" && len(m.Spec.Windows) == 0 {
		return jsonWindows{}, nil, false
	}
	j := jsonWindows{Mooring: m.Namespace + "/" + m.Name, Suspended: m.Spec.Suspend}
	when, err := sync.TimetableOf(m)
	if err != nil {
		j.Error = err.Error()
		return j, []cell{{text: "error", paint: color.red}, plain(oneLine(j.Error)), plain("-"), plain("-"), plain("-"), plain("-")}, true
	}
	state := when.Windows.At(now)
	j.Open = state.Open
	by, opens, closes := "-", "-", "-"
	if !when.Windows.None() {
		zone := when.Windows.Zone(state.By)
		j.Opens, opens = instant(state.Opens, zone)
		j.Closes, closes = instant(state.Closes, zone)
		by = "no window is on"
		if state.By >= 0 {
			j.Window = &jsonWindow{state.By, m.Spec.Windows[state.By]}
			by = fmt.Sprintf("%s %s for %s", j.Window.Kind, j.Window.Schedule, hours(j.Window.Duration.Duration))
		}
	}
	next, last := "-", "-"
	if when.Slots != nil {
		j.Schedule = when.Slots.String()
		j.NextSlot, next = instant(when.Slots.Next(now), when.Slots.Zone())
		if s := m.Status.LastScheduleTime; s != nil {
			j.LastSlot, last = instant(s.Time, when.Slots.Zone())
		}
	}
	status := cell{text: "open", paint: color.green}
	switch {
	case j.Suspended:
		status = cell{text: "suspended", paint: color.yellow}
	case !j.Open:
		status = cell{text: "closed", paint: color.yellow}
	}
	return j, []cell{status, plain(by), plain(opens), plain(closes), plain(next), plain(last)}, true
}

// instant for programs and for people; nil and a dash for one that is not in sight.
func instant(t time.Time, zone *time.Location) (*metav1.Time, string) {
	if t.IsZero() {
		return nil, "-"
	}
	return new(metav1.NewTime(t.UTC())), t.In(zone).Format("Mon 2006-01-02 15:04 MST")
}

// hours writes a duration as people do: 63h, 90m.
func hours(d time.Duration) string {
	switch {
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return d.String()
}

func (c *cli) printWindows(o *getOptions, found []v1alpha1.Mooring, now time.Time) error {
	color := paletteFor(c.color, c.out, c.getenv)
	t := &table{head: []string{"MOORING", "NOW", "BY", "OPENS", "CLOSES", "NEXT SLOT", "LAST SLOT"}}
	all := []jsonWindows{}
	for i := range found {
		j, row, has := windowsOf(&found[i], now, color)
		if !has {
			continue
		}
		name := found[i].Name
		if o.all {
			name = j.Mooring
		}
		all = append(all, j)
		t.add(append([]cell{plain(name)}, row...)...)
	}
	switch {
	case o.output == outputJSON:
		return writeJSON(c.out, all)
	case o.output == outputYAML:
		return writeYAML(c.out, all)
	case len(found) == 0:
		return nil
	case len(all) == 0:
		_, err := fmt.Fprintln(c.errOut, "New commits are taken up at each interval: there are neither windows nor schedules.")
		return err
	}
	return t.write(c.out)
}
