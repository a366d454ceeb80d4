// Package metric asks a Prometheus whether a number is as it should be, before a commit goes on to the next environment.
//
// Ask sends one instant query by the HTTP API (https://prometheus.io/docs/prometheus/latest/querying/api/#instant-queries) with the official client, and holds every series
// of the answer against the bounds. $soak in the expression stands for the time that a commit must have been in force, so that a rate is taken over just that time. The instant is
// Prometheus' own now: an agent whose clock is ahead would ask for what was not scraped yet.
//
// What is no number speaks against the commit, since nothing is inferred from absence: no series at all, NaN (0/0, when nobody called), an infinity, a histogram, a text, a range.
// Those are answers, with words for a person. What could not be asked is an Error, whose Kind says what mends it. Neither holds a credential, nor anything of an answer that does
// not come from Prometheus' API: an address that a tenant wrote must not show what the agent can reach.
//
// An answer may have a mebibyte, and a question takes fifteen seconds at most.
package metric

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

const (
	// patience with one question.
	patience = 15 * time.Second
	// grace for the answer to arrive in which Prometheus says that it ran out of time.
	grace = time.Second
	// maxAnswer is how much of an answer is read: some five thousand series.
	maxAnswer = 1 << 20
)

// Query is one question, and what answer is good.
type Query struct {
	// Name in messages, such as success-rate.
	Name string
	// Address of Prometheus, without the API's path: http://prometheus.monitoring:9090.
	Address string
	// Expr in PromQL; $soak in it stands for Soak.
	Expr string
	// Soak is how long a commit must have been in force. An expression with $soak needs one.
	Soak time.Duration
	// Min and Max are decimal numbers; empty for no bound.
	Min, Max string
	// Auth is what Prometheus wants to see; over https only.
	Auth Auth
	// Patience with the answer; fifteen seconds when it is 0.
	Patience time.Duration
}

// Answer is what Prometheus said.
type Answer struct {
	// Good says that there is at least one series and that each is a number within the bounds.
	Good bool
	// Words for a person: success-rate is 0.87 for {app="cart"}, want at least 0.99.
	Words string
	// Warnings of Prometheus, such as that a part of the data could not be read. They are in Words as well.
	Warnings []string
}

// Ask asks now. An error is an *Error, unless ctx ended.
func Ask(ctx context.Context, q Query) (Answer, error) {
	limits, err := parseBounds(q.Min, q.Max)
	if err != nil {
		return Answer{}, q.fail(KindQuery, "", "%w", err)
	}
	expr, err := q.expression()
	if err != nil {
		return Answer{}, q.fail(KindQuery, "set spec.promotion.soak, or write a time such as 10m in its place", "%w", err)
	}
	line, err := q.line()
	if err != nil {
		return Answer{}, err
	}
	defer line.transport.CloseIdleConnections()
	client, err := api.NewClient(api.Config{Address: q.Address, Client: line.client()})
	if err != nil {
		return Answer{}, q.fail(KindAddress, "", "the address is not a URL")
	}
	limit := cmp.Or(q.Patience, patience)
	asking, cancel := context.WithTimeout(ctx, limit+grace)
	defer cancel()
	value, warnings, err := prometheus.NewAPI(client).Query(asking, expr, time.Time{}, prometheus.WithTimeout(limit))
	switch {
	case err == nil:
	case isText(err):
		value = &model.String{}
	case ctx.Err() != nil:
		return Answer{}, fmt.Errorf("ask for %s: %w", q.Name, context.Cause(ctx))
	default:
		return Answer{}, q.explain(err, line.status, asking.Err() != nil)
	}
	answer := limits.judge(q.Name, value)
	for _, w := range warnings {
		answer.Warnings = append(answer.Warnings, clip(w))
	}
	if len(answer.Warnings) > 0 {
		answer.Words = clip(answer.Words + "; Prometheus warns: " + strings.Join(answer.Warnings, "; "))
	}
	return answer, nil
}

// isText knows the answer that the client cannot read, though it has a type for it.
func isText(err error) bool { return strings.Contains(err.Error(), `unexpected value type "string"`) }

// soak is the variable; what only begins like it is something else.
var soak = regexp.MustCompile(`\$soak\b`)

// expression with the soak in Prometheus' form. A range of no time is refused by Prometheus with words that nobody would understand who never wrote one.
func (q Query) expression() (string, error) {
	if !soak.MatchString(q.Expr) {
		return q.Expr, nil
	}
	if q.Soak < time.Millisecond {
		return "", fmt.Errorf("the query has $soak, and there is no soak")
	}
	return soak.ReplaceAllLiteralString(q.Expr, model.Duration(q.Soak).String()), nil
}

// maxWords that go into a message.
const maxWords = 300

// clip what others wrote: one line, not too long.
func clip(text string) string {
	text = strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "")
	if runes := []rune(text); len(runes) > maxWords {
		return string(runes[:maxWords]) + "…"
	}
	return text
}
