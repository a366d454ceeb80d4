package schedule

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Bounds of what is read.
const (
	// maxExpression is longer than any expression that a person can still read.
	maxExpression = 256
	// minEvery is the grain of the five fields.
	minEvery = time.Minute
	maxEvery = 366 * 24 * time.Hour
)

// field is one of the five, and what it may hold.
type field struct {
	name     string
	min, max int
	// names stand for min, min+1 and so on.
	names []string
}

// fields in their order.
func fields() [5]field {
	return [5]field{
		{name: "minute", max: 59},
		{name: "hour", max: 23},
		{name: "day of month", min: 1, max: 31},
		{name: "month", min: 1, max: 12, names: strings.Fields("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC")},
		{name: "day of week", max: 6, names: strings.Fields("SUN MON TUE WED THU FRI SAT")},
	}
}

// descriptor gives the five fields that a word stands for; empty when it is none.
func descriptor(word string) string {
	switch word {
	case "@yearly", "@annually":
		return "0 0 1 1 *"
	case "@monthly":
		return "0 0 1 * *"
	case "@weekly":
		return "0 0 * * 0"
	case "@daily", "@midnight":
		return "0 0 * * *"
	case "@hourly":
		return "0 * * * *"
	}
	return ""
}

// Parse reads an expression, whose times of day are those of the zone; an empty zone is UTC. An error says what is wrong with which part, and what to
// write instead.
func Parse(expression, zone string) (*Cron, error) {
	c := &Cron{text: expression}
	var err error
	if c.zone, err = location(zone); err != nil {
		return nil, err
	}
	if err := c.read(expression); err != nil {
		return nil, fmt.Errorf("read %q: %w", expression, err)
	}
	return c, nil
}

func (c *Cron) read(expression string) error {
	text := strings.TrimSpace(expression)
	upper := strings.ToUpper(text)
	switch {
	case text == "":
		return errors.New("it is empty")
	case len(text) > maxExpression:
		return fmt.Errorf("it is longer than %d characters", maxExpression)
	case strings.HasPrefix(upper, "TZ=") || strings.HasPrefix(upper, "CRON_TZ="):
		return errors.New("the time zone does not go into the expression: write it in timeZone")
	}
	if text == "@every" || strings.HasPrefix(text, "@every ") {
		return c.readEvery(strings.TrimSpace(strings.TrimPrefix(text, "@every")))
	}
	if strings.HasPrefix(text, "@") {
		if text = descriptor(text); text == "" {
			return errors.New("the words are @yearly, @monthly, @weekly, @daily, @hourly and @every 30m")
		}
	}
	return c.readFields(text)
}

func (c *Cron) readEvery(text string) error {
	every, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return fmt.Errorf("%q is no duration such as 30m or 1h30m", text)
	case every < minEvery, every > maxEvery, every%time.Second != 0:
		return fmt.Errorf("@every takes whole seconds, from %s to %s", "1m", "8784h")
	}
	c.every = every
	return nil
}

func (c *Cron) readFields(text string) error {
	parts := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '\t' })
	if len(parts) != len(fields()) {
		return fmt.Errorf("it has %d fields, and needs five: minute, hour, day of month, month, day of week", len(parts))
	}
	for i, f := range fields() {
		if err := f.check(parts[i]); err != nil {
			return fmt.Errorf("%s %q: %w", f.name, parts[i], err)
		}
	}
	parsed, err := cron.ParseStandard(strings.Join(parts, " "))
	if err != nil { // what was checked is what the library takes; should it ever not be, it is no panic
		return err
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return errors.New("it is not a calendar")
	}
	spec.Location = time.UTC
	c.calendar = spec
	c.hourly = spec.Hour&everyHour == everyHour
	if c.search(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return fmt.Errorf("it never comes: no month that it names has such a day (day of month %s, month %s)", parts[2], parts[3])
	}
	return nil
}

// everyHour has the bits of all hours.
const everyHour = 1<<24 - 1

// check holds a field against what it may be: items with commas between them, each *, a value or a range, perhaps with a step.
func (f field) check(text string) error {
	for item := range strings.SplitSeq(text, ",") {
		span, step, stepped := strings.Cut(item, "/")
		if stepped {
			if n, ok := number(step); !ok || n < 1 || n > f.max {
				return fmt.Errorf("a step is a number from 1 to %d, as in */%d", f.max, min(10, f.max))
			}
		}
		if span == "*" || span == "?" {
			continue
		}
		first, last, ranged := strings.Cut(span, "-")
		from, err := f.value(first)
		if err != nil {
			return err
		}
		if !ranged {
			continue
		}
		to, err := f.value(last)
		if err != nil {
			return err
		}
		if from > to {
			return fmt.Errorf("the range %s runs backwards: write two with a comma between them", span)
		}
	}
	return nil
}

func (f field) value(text string) (int, error) {
	for i, name := range f.names {
		if strings.EqualFold(text, name) {
			return f.min + i, nil
		}
	}
	n, ok := number(text)
	if ok && n >= f.min && n <= f.max {
		return n, nil
	}
	want := fmt.Sprintf("a number from %d to %d", f.min, f.max)
	if len(f.names) > 0 {
		want += fmt.Sprintf(", or a name from %s to %s", f.names[0], f.names[len(f.names)-1])
	}
	switch {
	case text == "":
		return 0, fmt.Errorf("something is missing: it takes *, %s, a range such as 1-5, or several with commas between them", want)
	case ok && n == 7 && f.name == "day of week":
		return 0, errors.New("a Sunday is 0 or SUN")
	case strings.ContainsAny(text, "LW#lw"):
		return 0, fmt.Errorf("%s is not %s; L, W and # are not known", text, want)
	}
	return 0, fmt.Errorf("%s is not %s", text, want)
}

// number reads digits alone: no sign, and no more than any field has.
func number(text string) (int, bool) {
	if len(text) == 0 || len(text) > 2 {
		return 0, false
	}
	for _, r := range text {
		if r < '0' || r > '9' {
			return 0, false
		}
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}

// location of a zone. Local is refused: it would be that of the machine that the agent happens to run on.
func location(name string) (*time.Location, error) {
	if name == "" {
		return time.UTC, nil
	}
	loc, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, fmt.Errorf("time zone %q is not known: write a name of the IANA database, such as Europe/Berlin or UTC", name)
	}
	return loc, nil
}
