package report

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/testing/protocmp"
)

// TestSeriesAreAsTheLibraryHasThem: the same figures give, sample for sample, what the library's own vectors give, but for the time at which each began.
func TestSeriesAreAsTheLibraryHasThem(t *testing.T) {
	buckets := []float64{0.125, 1, 10} // their sums are exact
	labels := func(more ...string) []string { return append([]string{"namespace", "name"}, more...) }
	counters := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "c_total", Help: "Counted."}, labels("action"))
	gauges := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "g", Help: "Measured."}, labels())
	reasons := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "r", Help: "By reason."}, labels("reason"))
	histograms := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "h_seconds", Help: "Observed.", Buckets: buckets}, labels("stage"))
	theirs := prometheus.NewRegistry()
	theirs.MustRegister(counters, gauges, reasons, histograms)

	s := &series{of: map[mooringName]*figures{}, labels: map[label]*dto.LabelPair{}}
	c, g := s.family(prometheus.CounterValue, "c_total", "Counted.", "action"), s.family(prometheus.GaugeValue, "g", "Measured.", "")
	r, h := s.family(prometheus.GaugeValue, "r", "By reason.", "reason"), s.family(prometheus.UntypedValue, "h_seconds", "Observed.", "stage", buckets...)
	ours := prometheus.NewPedanticRegistry()
	ours.MustRegister(s)

	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // figures
	for range 500 {
		namespace, name := "ns"+strconv.Itoa(random.IntN(3)), "m"+strconv.Itoa(random.IntN(4))
		word, v := strconv.Itoa(random.IntN(3)), []float64{0, 0.125, 0.5, 1, 7, 10, 11, -1}[random.IntN(8)]
		s.mu.Lock()
		f := s.figures(namespace, name)
		switch random.IntN(6) {
		case 0:
			f.add(c, word, max(v, 0))
			counters.WithLabelValues(namespace, name, word).Add(max(v, 0))
		case 1:
			f.set(g, "", v)
			gauges.WithLabelValues(namespace, name).Set(v)
		case 2:
			f.drop(r)
			f.set(r, word, v)
			reasons.DeletePartialMatch(prometheus.Labels{"namespace": namespace, "name": name})
			reasons.WithLabelValues(namespace, name, word).Set(v)
		default:
			f.observe(h, word, v)
			histograms.WithLabelValues(namespace, name, word).Observe(v)
		}
		s.mu.Unlock()
	}
	gone := prometheus.Labels{"namespace": "ns1", "name": "m1"}
	s.forget("ns1", "m1")
	counters.DeletePartialMatch(gone)
	gauges.DeletePartialMatch(gone)
	reasons.DeletePartialMatch(gone)
	histograms.DeletePartialMatch(gone)

	want, err := theirs.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got, err := ours.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, protocmp.Transform(), protocmp.IgnoreFields(&dto.Counter{}, "created_timestamp"), protocmp.IgnoreFields(&dto.Histogram{}, "created_timestamp")); diff != "" || len(want) != 4 {
		t.Errorf("%d families (-library +ours):\n%s", len(want), diff)
	}
}

func TestSeriesWhileTheyAreRead(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := NewMetrics(reg)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 100 {
				m.Observe("mesh", strconv.Itoa(i), Outcome{Reason: "Applied"})
			}
			m.Forget("mesh", strconv.Itoa(i))
		})
		wg.Go(func() {
			for range 20 {
				if _, err := reg.Gather(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if all, err := reg.Gather(); err != nil || len(all) > 0 {
		t.Errorf("%d families are left, %v", len(all), err)
	}
}
