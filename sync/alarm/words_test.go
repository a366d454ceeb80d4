package alarm_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mooring-dev/mooring/sync/alarm"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

func TestTemplates(t *testing.T) {
	for _, c := range []struct{ text, want, err string }{
		{"{{.Title}} / {{.Alarm}}", "a title / shop/chat", ""},
		{"{{range .Firing}}{{.Event}} {{.Reason}} {{.Count}} {{join .Moorings `, `}} {{.Message}}{{end}}", "failed ApplyFailed 1 shop/prod a message", ""},
		{"{{range .Resolved}}{{.Names}}{{else}}none{{end}}", "shop/prod", ""},
		{`{{define "line"}}<{{.Names}}>{{end}}{{range .Firing}}{{template "line" .}}{{end}}`, "<shop/prod>", ""},
		{`{{printf "%-12s|" "a"}}`, "a           |", ""},
		{"{{range .Firing", "", "read template"},
		{"{{.Nothing}}", "", "fill in template"},
		{"{{nothing}}", "", "read template"},
		{"{{index .Firing 7}}", "", "fill in template"},
		// Whoever may write an Alarm must not be able to stop the agent.
		{"{{range 9999999999}}{{end}}", "", "does too much"},
		{"{{range 9999999999}}{{continue}}{{end}}", "", "does too much"},
		{"{{range 100}}{{range 100}}{{range 100}}{{end}}{{end}}{{end}}", "", "does too much"},
		{`{{define "a"}}{{template "a"}}{{end}}{{template "a"}}`, "", "does too much"},
		{`{{range 9000}}aaaaaaaaaaaaaaaaaaaa{{end}}`, "", "does too much"},
		{`{{printf "%999999d" 1}}`, "", "does too much"},
		{`{{printf "%*d" 999999 1}}`, "", "does too much"},
		{`{{$a := "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}}{{range 64}}{{$a = print $a $a}}{{end}}`, "", "does too much"},
		{`{{$a := "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}}{{range 64}}{{$a = html $a $a}}{{end}}`, "", "does too much"},
	} {
		begun := time.Now()
		_, text, err := alarm.Say(&v1alpha1.AlarmTemplate{Text: c.text}, alarm.SampleMessage())
		switch {
		case c.err == "" && (err != nil || text != c.want):
			t.Errorf("%s: %q, %v", c.text, text, err)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err) || text != "a text"):
			t.Errorf("%s: %q, %v", c.text, text, err)
		}
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("%s took %s", c.text, took)
		}
	}
}

func TestErrorsHoldNoAddress(t *testing.T) {
	for _, c := range []struct{ address, err string }{
		{"slack://hook:T000AAAA-B000BBBB-hunter2hunter2@webhook", `failed to invoke webhook: Post "https://hooks.slack.com/services/T000AAAA/B000BBBB/hunter2hunter2": EOF`},
		{"discord://hunter2hunter2@1234567", "POST https://discord.com/api/webhooks/1234567/hunter2hunter2: 404"},
		{"smtp://user:hunter2%2Fhunter2@mail.example.com:587/?from=a@b.example&to=c@d.example", "535 auth for user with hunter2/hunter2 failed\nsecond line"},
		{"generic://hooks.example.com/hunter2?template=json", `bad: "hunter2" at hooks.example.com`},
		{"telegram://110201543:AAHdqT-hunter2@telegram?chats=@chan", "no such bot 110201543:AAHdqT-hunter2"},
	} {
		got := alarm.Masked(errors.New(c.err), c.address)
		for _, part := range []string{"hunter2", "T000", "B000", "1234567", "example.com", "110201543", "second"} {
			if strings.Contains(got, part) {
				t.Errorf("%s: %s", c.address, got)
			}
		}
	}
	for _, address := range []string{"slack://hunter2", "hunter2://x y", "http://hunter2", "smtp://u:hunter2@[::1", "generic://%zzhunter2", "telegram://hunter2", "://hunter2"} {
		if err := alarm.Open(address); err == nil || strings.Contains(err.Error(), "hunter2") && !strings.HasPrefix(address, "hunter2:") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestOneCauseIsKnownAgain(t *testing.T) {
	one := `apply VirtualService/shop/r0 (routes.yaml:1): virtualservices.networking.istio.io "r0" is forbidden: User "agent" cannot patch. It is tried again by itself.`
	many := `apply VirtualService/shop/r0 (routes.yaml:1), VirtualService/shop/r1 (routes.yaml:11), VirtualService/b/c and 27 more objects: ` +
		`virtualservices.networking.istio.io "…" is forbidden: User "agent" cannot patch. It is tried again by itself.`
	other := `apply VirtualService/shop/r0 (routes.yaml:1): admission webhook "v.istio.io" denied the request. It is tried again by itself.`
	if a, b := alarm.Skeleton(one), alarm.Skeleton(many); a != b {
		t.Errorf("one: %s\nmany: %s", a, b)
	}
	if alarm.Skeleton(one) == alarm.Skeleton(other) {
		t.Error("two causes are taken for one")
	}
}
