package alarm

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// What a template may cost. Whoever may write an Alarm must not be able to keep the agent busy or fill its memory.
const (
	maxTicks = 10_000
	maxWords = 16 << 10
)

// words makes the title and the text of a message. Templates that are wrong, or fail, are replaced by the agent's own words.
type words struct {
	title, text *source
}

// source of a template that parses.
type source struct{ name, text string }

// newWords reads templates. The words are of use also when there is an error: then they are the agent's own.
func newWords(t *v1alpha1.AlarmTemplate) (*words, error) {
	w := &words{}
	if t == nil {
		return w, nil
	}
	var errs []error
	for _, one := range []struct {
		name, text string
		to         **source
	}{{"title", t.Title, &w.title}, {"text", t.Text, &w.text}} {
		if one.text == "" {
			continue
		}
		s := &source{name: "spec.template." + one.name, text: one.text}
		if _, err := s.render(example()); err != nil {
			errs = append(errs, err)
			continue
		}
		*one.to = s
	}
	return w, errors.Join(errs...)
}

// say is the title and the text of a message.
func (w *words) say(m *Message) (title, text string) {
	title, text = m.Title, m.Text
	if s, err := w.title.render(m); err == nil && s != "" {
		title = clip(strings.Join(strings.Fields(s), " "), maxTitle)
	}
	if s, err := w.text.render(m); err == nil && s != "" {
		text = clip(strings.TrimSpace(s), maxText)
	}
	return title, text
}

// example has something of everything, so that a template that asks for what is not there is found before there is anything to tell.
func example() *Message {
	one := func(e v1alpha1.AlarmEvent) []Group {
		return []Group{{Event: e, Reason: v1alpha1.ReasonApplyFailed, Message: "a message", Moorings: []string{"shop/prod"}, Names: "shop/prod", Count: 1}}
	}
	return &Message{
		Alarm: "shop/chat", Title: "a title", Text: "a text",
		Firing: one(v1alpha1.AlarmFailed), Resolved: one(v1alpha1.AlarmDrift), Happened: one(v1alpha1.AlarmApplied),
	}
}

// render gives nothing for no template.
func (s *source) render(m *Message) (string, error) {
	if s == nil {
		return "", nil
	}
	b := budget{ticks: maxTicks}
	t, err := template.New(s.name).Option("missingkey=error").Funcs(b.functions()).Parse(s.text)
	if err != nil {
		return "", fmt.Errorf("read template: %w", err)
	}
	for _, part := range t.Templates() {
		if part.Tree != nil && part.Root != nil {
			meter(part.Root)
			spend(part.Root)
		}
	}
	out := &limited{}
	if err := t.Execute(out, m); err != nil {
		return "", fmt.Errorf("fill in template: %w", err)
	}
	return out.String(), nil
}

// meter has each round of a loop in a list spend from the budget.
func meter(list *parse.ListNode) {
	if list == nil {
		return
	}
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.RangeNode:
			meter(n.List)
			meter(n.ElseList)
			spend(n.List)
		case *parse.IfNode:
			meter(n.List)
			meter(n.ElseList)
		case *parse.WithNode:
			meter(n.List)
			meter(n.ElseList)
		}
	}
}

// spend from the budget whenever a list begins.
func spend(list *parse.ListNode) {
	list.Nodes = append([]parse.Node{ticking()}, list.Nodes...)
}

// ticking is the action {{tick}}.
func ticking() parse.Node {
	trees, err := parse.Parse("tick", "{{tick}}", "", "", map[string]any{"tick": true})
	if err != nil {
		return &parse.TextNode{NodeType: parse.NodeText} // a constant that parses
	}
	return trees["tick"].Root.Nodes[0]
}

var errTooMuch = errors.New("it does too much: a message is a title and a few lines")

// budget of one template.
type budget struct{ ticks int }

// functions that a template may call beside those that cannot cost much. Those that make text make no more than a message may hold.
func (b *budget) functions() template.FuncMap {
	bounded := func(f func(...any) string) func(...any) (string, error) {
		return func(args ...any) (string, error) {
			b.ticks--
			s := f(args...)
			if len(s) > maxWords || b.ticks < 0 {
				return "", errTooMuch
			}
			return s, nil
		}
	}
	wide := regexp.MustCompile(`[0-9]{4}|\*`)
	return template.FuncMap{
		"tick": func() (string, error) {
			if b.ticks--; b.ticks < 0 {
				return "", errTooMuch
			}
			return "", nil
		},
		"printf": func(format string, args ...any) (string, error) {
			if wide.MatchString(format) {
				return "", errTooMuch
			}
			return bounded(func(args ...any) string { return fmt.Sprintf(format, args...) })(args...)
		},
		"print":    bounded(fmt.Sprint),
		"println":  bounded(fmt.Sprintln),
		"html":     bounded(template.HTMLEscaper),
		"js":       bounded(template.JSEscaper),
		"urlquery": bounded(template.URLQueryEscaper),
		"join":     func(list []string, by string) (string, error) { return bounded(fmt.Sprint)(strings.Join(list, by)) },
	}
}

// limited is a text that ends with an error rather than growing.
type limited struct{ strings.Builder }

// Write takes what there is room for.
func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxWords {
		return 0, errTooMuch
	}
	return l.Builder.Write(p)
}
