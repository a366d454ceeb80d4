package metric

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
)

// bounds within which a number is good.
type bounds struct {
	min, max float64
	// words such as "at least 0.99", with the numbers as they were written.
	words string
}

func parseBounds(low, high string) (bounds, error) {
	b := bounds{min: math.Inf(-1), max: math.Inf(1)}
	for _, bound := range []struct {
		text string
		into *float64
	}{{low, &b.min}, {high, &b.max}} {
		if bound.text == "" {
			continue
		}
		v, err := strconv.ParseFloat(bound.text, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return b, fmt.Errorf("the bound %q is not a decimal number", clip(bound.text))
		}
		*bound.into = v
	}
	switch {
	case low == "" && high == "":
		return b, fmt.Errorf("there is no bound: set min, max or both")
	case b.min > b.max:
		return b, fmt.Errorf("nothing is at least %s and at most %s", low, high)
	case high == "":
		b.words = "at least " + low
	case low == "":
		b.words = "at most " + high
	default:
		b.words = "between " + low + " and " + high
	}
	return b, nil
}

// good is false for what is no number.
func (b bounds) good(v float64) bool { return b.min <= v && v <= b.max && !math.IsInf(v, 0) }

// series is one number of an answer.
type series struct {
	labels string
	value  float64
	// other is what there is in place of a number.
	other string
}

// judge an answer. Of several faults the first by its labels is told: Prometheus keeps no order, and a status that changes with each question tells of nothing.
func (b bounds) judge(name string, value model.Value) Answer {
	bad := func(format string, args ...any) Answer {
		return Answer{Words: clip(name + " " + fmt.Sprintf(format, args...))}
	}
	var all []series
	switch value := value.(type) {
	case *model.Scalar:
		all = []series{{value: float64(value.Value)}}
	case model.Vector:
		all = seriesOf(value)
	case model.Matrix:
		return bad("is a range of numbers, want one for each series: put a function such as rate or avg_over_time around it")
	case *model.String:
		return bad("is a text, want a number")
	default:
		return bad("is nothing that is known, want a number")
	}
	if len(all) == 0 {
		return bad("has no data, want %s", b.words)
	}
	faults := slices.DeleteFunc(slices.Clone(all), func(s series) bool { return s.other == "" && b.good(s.value) })
	if len(faults) == 0 {
		return Answer{Good: true, Words: clip(name + " is " + b.span(all) + ", " + b.words)}
	}
	first, more := faults[0], ""
	if len(faults) > 1 {
		more = fmt.Sprintf("; %d of %d series are out of bounds", len(faults), len(all))
	}
	return bad("is %s%s, want %s%s", b.say(first), first.where(), b.words, more)
}

func seriesOf(vector model.Vector) []series {
	all := make([]series, 0, len(vector))
	for _, sample := range vector {
		s := series{labels: sample.Metric.String(), value: float64(sample.Value)}
		if sample.Histogram != nil {
			s.other = "a histogram"
		}
		if len(sample.Metric) == 0 {
			s.labels = ""
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(x, y series) int { return strings.Compare(x.labels, y.labels) })
	return all
}

func (s series) where() string {
	if s.labels == "" {
		return ""
	}
	return " for " + s.labels
}

// say a value in few digits, but never so few that it would be on the other side of a bound.
func (b bounds) say(s series) string {
	switch {
	case s.other != "":
		return s.other
	case math.IsNaN(s.value):
		return "NaN (0/0, as when nothing was counted)"
	case math.IsInf(s.value, 0):
		return "infinite"
	}
	for _, digits := range []int{4, 8} {
		short := strconv.FormatFloat(s.value, 'g', digits, 64)
		if rounded, err := strconv.ParseFloat(short, 64); err == nil && b.good(rounded) == b.good(s.value) {
			return strconv.FormatFloat(rounded, 'f', -1, 64)
		}
	}
	return strconv.FormatFloat(s.value, 'g', -1, 64)
}

// span of numbers that are all good.
func (b bounds) span(all []series) string {
	low := slices.MinFunc(all, byValue)
	high := slices.MaxFunc(all, byValue)
	if b.say(low) == b.say(high) {
		return b.say(low)
	}
	return fmt.Sprintf("%s to %s over %d series", b.say(low), b.say(high), len(all))
}

func byValue(x, y series) int { return cmp.Compare(x.value, y.value) }
