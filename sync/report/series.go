package report

import (
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// series are the figures of all Moorings. The vectors of Prometheus' library keep some 700 bytes for each series, and 3 KiB for each histogram, which with
// 200 Moorings were an eighth of the agent's live memory, and to drop a series whose label changes they look at those of all Moorings. Here it is some 50 bytes,
// and what the library wants to see is made when it asks.
type series struct {
	mu       sync.Mutex
	families []*family
	of       map[mooringName]*figures // guarded by mu
	labels   map[label]*dto.LabelPair // guarded by mu: those that many series have
}

type mooringName struct{ namespace, name string }

type label struct{ name, value string }

// family is all series of one name.
type family struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	// label that the series have beside the Mooring's; empty for none.
	label string
	// buckets are the upper bounds of a histogram's; nil for what is none.
	buckets []float64
}

// figures of one Mooring.
type figures struct {
	namespace, name *dto.LabelPair
	all             []figure
}

// figure is one series.
type figure struct {
	*family
	label string
	value float64 // of a histogram, the sum
	// counts are the observations by bucket, the last one for what is above all of them; nil for what is no histogram.
	counts []uint64
}

func (s *series) family(kind prometheus.ValueType, name, help, label string, buckets ...float64) *family {
	labels := []string{"namespace", "name"}
	if label != "" {
		labels = append(labels, label)
	}
	f := &family{prometheus.NewDesc(name, help, labels, nil), kind, label, buckets}
	s.families = append(s.families, f)
	return f
}

// figures of a Mooring. Called with mu held.
func (s *series) figures(namespace, name string) *figures {
	id := mooringName{namespace, name}
	f := s.of[id]
	if f == nil {
		f = &figures{namespace: pair("namespace", namespace), name: pair("name", name)}
		s.of[id] = f
	}
	return f
}

func (s *series) forget(namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, mooringName{namespace, name})
}

// get gives a series, which begins at 0.
func (f *figures) get(of *family, label string) *figure {
	i := slices.IndexFunc(f.all, func(x figure) bool { return x.family == of && x.label == label })
	if i < 0 {
		i = len(f.all)
		f.all = append(f.all, figure{family: of, label: label})
		if of.buckets != nil {
			f.all[i].counts = make([]uint64, len(of.buckets)+1)
		}
	}
	return &f.all[i]
}

func (f *figures) set(of *family, label string, v float64) { f.get(of, label).value = v }

func (f *figures) add(of *family, label string, v float64) { f.get(of, label).value += v }

func (f *figures) observe(of *family, label string, v float64) {
	x := f.get(of, label)
	x.value += v
	i, _ := slices.BinarySearch(of.buckets, v) // a bound belongs to its bucket
	x.counts[i]++
}

// drop all series of a family.
func (f *figures) drop(of *family) {
	f.all = slices.DeleteFunc(f.all, func(x figure) bool { return x.family == of })
}

// Describe is for the registry.
func (s *series) Describe(to chan<- *prometheus.Desc) {
	for _, f := range s.families {
		to <- f.desc
	}
}

// Collect is for the registry. What it gives is as it is at this moment.
func (s *series) Collect(to chan<- prometheus.Metric) {
	s.mu.Lock()
	var all []sample
	for _, f := range s.of {
		for _, x := range f.all {
			one := sample{figure: x, labels: []*dto.LabelPair{f.name, f.namespace}}
			one.counts = slices.Clone(x.counts)
			if x.family.label != "" {
				one.labels = append(one.labels, s.pair(x.family.label, x.label))
				slices.SortFunc(one.labels, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
			}
			all = append(all, one)
		}
	}
	s.mu.Unlock()
	for i := range all {
		to <- &all[i]
	}
}

// pair of a label that many series have. Called with mu held.
func (s *series) pair(name, value string) *dto.LabelPair {
	p := s.labels[label{name, value}]
	if p == nil {
		p = pair(name, value)
		s.labels[label{name, value}] = p
	}
	return p
}

func pair(name, value string) *dto.LabelPair { return &dto.LabelPair{Name: &name, Value: &value} }

// sample is a series at one moment.
type sample struct {
	figure
	labels []*dto.LabelPair
}

// Desc is for the registry.
func (s *sample) Desc() *prometheus.Desc { return s.desc }

// Write is for the registry. The pairs of labels are shared; nobody writes into them.
func (s *sample) Write(to *dto.Metric) error {
	to.Label = s.labels
	switch {
	case s.buckets != nil:
		to.Histogram = s.histogram()
	case s.kind == prometheus.CounterValue:
		to.Counter = &dto.Counter{Value: &s.value}
	default:
		to.Gauge = &dto.Gauge{Value: &s.value}
	}
	return nil
}

func (s *sample) histogram() *dto.Histogram {
	h := &dto.Histogram{SampleCount: new(uint64), SampleSum: &s.value}
	for i, n := range s.counts {
		*h.SampleCount += n
		if i < len(s.buckets) { // the last one is the whole
			h.Bucket = append(h.Bucket, &dto.Bucket{UpperBound: &s.buckets[i], CumulativeCount: new(*h.SampleCount)})
		}
	}
	return h
}
