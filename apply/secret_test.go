package apply_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mooring-dev/mooring/apply"
)

const (
	oldValue = "old-hunter2-old"
	newValue = "new-correct-horse-new"
)

// leaks fails when a text holds a value of the test's Secrets, plain or encoded.
func (f *fixture) leaks(what, text string) {
	f.Helper()
	for _, value := range []string{oldValue, newValue, "1234567890"} {
		for _, form := range []string{value, base64.StdEncoding.EncodeToString([]byte(value))} {
			if strings.Contains(text, form) {
				f.Errorf("%s tells the value %q:\n%s", what, value, text)
			}
		}
	}
}

func secretWith(value string) string {
	return "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: $NS}\nstringData: {password: " + value + "}\n"
}

// Secret values are nowhere in a plan, a result, a diff or an error: not the wanted ones, not the live ones, not kubectl's copy of them.
func TestSecretsStaySecret(t *testing.T) {
	f := newFixture(t)
	f.kubectl("apply", "-f", f.write(secretWith(oldValue)))
	p := f.plan(secretWith(newValue))
	f.want(p, "update Secret/s")
	if diff := cmp.Diff([]string{
		`/data/password: "*** (before)" → "*** (after)" (set by kubectl-client-side-apply)`,
		`/metadata/labels: (none) → {"applyset.kubernetes.io/part-of":"` + f.unit.ID + `"}`,
	}, f.diffs(p)); diff != "" {
		t.Errorf("diff (-want +got):\n%s", diff)
	}
	r := f.run(p)
	f.tell(p, r)
	f.settled(secretWith(newValue))

	f.edit("secret", "s", `{"stringData":{"more":"`+oldValue+`","password":"`+oldValue+`"}}`)
	p, r = f.sync(secretWith(newValue))
	f.want(p, "update Secret/s")
	f.tell(p, r)
	f.settled(secretWith(newValue))
	f.applier.Forget(f.unit.ID)
	f.settled(secretWith(newValue))
}

func (f *fixture) tell(p *apply.Plan, r *apply.Result) {
	f.Helper()
	f.leaks("the listing", p.String())
	f.leaks("the plan", fmt.Sprintf("%+v %#v", p, p))
	f.leaks("the result", fmt.Sprintf("%+v %#v", r, r))
	for s := range p.Steps() {
		text, err := json.Marshal(s)
		if err != nil {
			f.Fatal(err)
		}
		f.leaks("the step", string(text)+fmt.Sprintf("%+v", s))
	}
}

func TestSecretsStaySecretInErrors(t *testing.T) {
	f := newFixture(t)
	f.kubectl("create", "secret", "generic", "s", "--from-literal=password="+oldValue)
	f.kubectl("patch", "secret", "s", "--type=merge", "-p", `{"immutable":true}`)
	for name, stream := range map[string]string{
		"a number":        "apiVersion: v1\nkind: Secret\nmetadata: {name: other, namespace: $NS}\ndata: {password: 1234567890}\n",
		"a plain number":  "apiVersion: v1\nkind: Secret\nmetadata: {name: other, namespace: $NS}\nstringData: {password: 1234567890}\n",
		"not encoded":     "apiVersion: v1\nkind: Secret\nmetadata: {name: other, namespace: $NS}\ndata: {password: " + newValue + "!}\n",
		"no map":          "apiVersion: v1\nkind: Secret\nmetadata: {name: other, namespace: $NS}\ndata: " + newValue + "\n",
		"no map of texts": "apiVersion: v1\nkind: Secret\nmetadata: {name: other, namespace: $NS}\nstringData: [" + newValue + "]\n",
		"in a wrong type": "apiVersion: v1\nkind: Secret\nmetadata: {name: other, namespace: $NS}\ntype: kubernetes.io/tls\nstringData: {password: " + newValue + "}\n",
		"immutable":       secretWith(newValue),
	} {
		t.Run(name, func(t *testing.T) {
			f := *f
			f.T = t
			err := f.refuse(stream)
			f.leaks("the error", err.Error())
			var status apierrors.APIStatus
			if errors.As(err, &status) {
				f.leaks("the status within", fmt.Sprintf("%+v", status.Status()))
			}
			if !strings.Contains(err.Error(), "Secret/"+f.ns) {
				t.Errorf("the error does not name the object: %v", err)
			}
			if name == "immutable" && !strings.Contains(err.Error(), "mooring.dev/force") {
				t.Errorf("the error does not say how to mend it: %v", err)
			}
		})
	}
}
