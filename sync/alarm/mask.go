package alarm

import (
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// masked is an error's text without an address and without any part of the secret address that was used. The error itself is not kept:
// whoever unwraps it would find what was masked.
func masked(err error, address string) error {
	if err == nil {
		return nil
	}
	s := regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>]+`).ReplaceAllString(err.Error(), "(address)")
	for _, part := range parts(address) {
		s = strings.ReplaceAll(s, part, "***")
	}
	s, _, _ = strings.Cut(s, "\n")
	return errors.New(clip(s, maxError))
}

// minPart is how short a part of an address may be and still be taken for a secret wherever it stands. What is shorter is found only as a
// whole password.
const minPart = 4

// parts of an address, as they are written and as they are meant, the longest first.
func parts(address string) []string {
	var all []string
	_, rest, _ := strings.Cut(address, "://")
	for _, s := range strings.FieldsFunc(rest, func(r rune) bool { return strings.ContainsRune("/:@?&=#,; ", r) }) {
		all = append(all, s)
		if plain, err := url.QueryUnescape(s); err == nil {
			all = append(all, plain)
		}
		if plain, err := url.PathUnescape(s); err == nil {
			all = append(all, plain)
		}
	}
	all = slices.DeleteFunc(all, func(s string) bool { return len(s) < minPart })
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	return slices.Compact(all)
}
