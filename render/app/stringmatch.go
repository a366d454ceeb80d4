package app

import (
	"bytes"
	"encoding/json"

	networking "istio.io/api/networking/v1alpha3"
)

// StringMatch is a text that has to be the whole value, or one of exact, prefix, regex, present: true and absent: true.
//
// +kubebuilder:pruning:PreserveUnknownFields
type StringMatch struct {
	json.RawMessage `json:"-"`
}

// UnmarshalJSON keeps what is written; what it means is found where a fault can be told with its place.
func (m *StringMatch) UnmarshalJSON(text []byte) error {
	m.RawMessage = bytes.Clone(text)
	return nil
}

// matchWords are those of a StringMatch that is a mapping.
type matchWords struct {
	Exact   *string `json:"exact"`
	Prefix  *string `json:"prefix"`
	Regex   *string `json:"regex"`
	Present bool    `json:"present"`
	Absent  bool    `json:"absent"`
}

// match reads a condition on a text. present gives a match without a word, which stands for any value; absent gives absent.
func (b *builder) match(m StringMatch, path []string) (out *networking.StringMatch, absent bool) {
	var exact string
	if json.Unmarshal(m.RawMessage, &exact) == nil && string(m.RawMessage) != "null" {
		return &networking.StringMatch{MatchType: &networking.StringMatch_Exact{Exact: exact}}, false
	}
	var w matchWords
	decoder := json.NewDecoder(bytes.NewReader(m.RawMessage))
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
			"%s is not a match", string(m.RawMessage))
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
func (b *builder) always(m StringMatch, path []string) *networking.StringMatch {
	out, absent := b.match(m, path)
	if absent {
		b.fail(path, "use exact, prefix or regex", "absent is for headers alone")
	}
	return out
}
