package app

import (
	"bytes"
	"encoding/json"

	networking "istio.io/api/networking/v1alpha3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// matchWords are those of a StringMatch that is a mapping.
type matchWords struct {
	Exact   *string `json:"exact"`
	Prefix  *string `json:"prefix"`
	Regex   *string `json:"regex"`
	Present bool    `json:"present"`
	Absent  bool    `json:"absent"`
}

// match reads a condition on a text. present gives a match without a word, which stands for any value; absent gives absent.
func (b *builder) match(m apiextensionsv1.JSON, path []string) (out *networking.StringMatch, absent bool) {
	var exact string
	if json.Unmarshal(m.Raw, &exact) == nil && string(m.Raw) != "null" {
		return &networking.StringMatch{MatchType: &networking.StringMatch_Exact{Exact: exact}}, false
	}
	var w matchWords
	decoder := json.NewDecoder(bytes.NewReader(m.Raw))
	decoder.DisallowUnknownFields()
	n := 0
	if decoder.Decode(&w) == nil {
		for _, set := range []bool{w.Exact != nil, w.Prefix != nil, w.Regex != nil, w.Present, w.Absent} {
			if set {
				n++
			}
		}
	}
	out = &networking.StringMatch{}
	switch {
	case n != 1:
		b.fail(path, `write a text in quotes, or one of exact: TEXT, prefix: TEXT, regex: TEXT, present: true, absent: true`,
			"%s is not a match", string(m.Raw))
	case w.Exact != nil:
		out.MatchType = &networking.StringMatch_Exact{Exact: *w.Exact}
	case w.Prefix != nil:
		out.MatchType = &networking.StringMatch_Prefix{Prefix: *w.Prefix}
	case w.Regex != nil:
		out.MatchType = &networking.StringMatch_Regex{Regex: *w.Regex}
	}
	return out, w.Absent
}

// always reads a condition where a value is there in any case.
func (b *builder) always(m apiextensionsv1.JSON, path []string) *networking.StringMatch {
	out, absent := b.match(m, path)
	if absent {
		b.fail(path, "use exact, prefix or regex", "absent is for headers alone")
	}
	return out
}
