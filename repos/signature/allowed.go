package signature

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// sshKey is a public key and the comment after it.
type sshKey struct {
	key     ssh.PublicKey
	comment string
}

func (k sshKey) is(other ssh.PublicKey) bool { return bytes.Equal(k.key.Marshal(), other.Marshal()) }

// allowedSigner is one line of a file of allowed signers.
type allowedSigner struct {
	key sshKey
	// line is what is told of the signer: the principals as they are written, or the comment of a key without any.
	line string
	// principals is nil for a key that stands for itself.
	principals  []string
	authority   bool
	namespaces  []string // nil for all
	after, upTo time.Time
}

// readPublicKeys reads lines such as "ssh-ed25519 AAAA… comment".
func readPublicKeys(value []byte) ([]sshKey, error) {
	var keys []sshKey
	for number, line := range numbered(value) {
		key, err := readPublicKey(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, errors.New("it holds no key")
	}
	return keys, nil
}

func readPublicKey(text string) (sshKey, error) {
	kind, _, _ := strings.Cut(text, " ")
	key, comment, options, _, err := ssh.ParseAuthorizedKey([]byte(text))
	switch {
	case err != nil || len(options) > 0 || key.Type() != kind:
		return sshKey{}, errors.New("it is no public key")
	case kind == kindDSA:
		return sshKey{}, errors.New("keys of kind DSA are not supported")
	}
	return sshKey{key: key, comment: printable(comment)}, nil
}

// readAllowedSigners reads the format of ssh-keygen(1), section ALLOWED SIGNERS.
func readAllowedSigners(value []byte) ([]allowedSigner, error) {
	var all []allowedSigner
	for number, line := range numbered(value) {
		a, err := readAllowedSigner(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		all = append(all, a)
	}
	if len(all) == 0 {
		return nil, errors.New("it names nobody")
	}
	return all, nil
}

// numbered gives the lines that say something, with their numbers.
func numbered(value []byte) func(yield func(int, string) bool) {
	return func(yield func(int, string) bool) {
		number := 0
		for line := range strings.SplitSeq(string(value), "\n") {
			number++
			line = strings.TrimSpace(line)
			if line == "" || line[0] == '#' {
				continue
			}
			if !yield(number, line) {
				return
			}
		}
	}
}

func readAllowedSigner(line string) (allowedSigner, error) {
	var a allowedSigner
	principals, rest, err := word(line)
	if err != nil {
		return a, err
	}
	a.line, a.principals = printable(principals), strings.Split(principals, ",")
	positive := false
	for _, p := range a.principals {
		positive = positive || p != "" && p[0] != '!'
	}
	if !positive {
		return a, errors.New("it names no principal")
	}
	if a.key, err = readPublicKey(rest); err == nil {
		return a, nil
	}
	options, rest, cut := cutOptions(rest)
	if !cut {
		return a, errors.New("after the principals there is no public key")
	}
	if err := a.readOptions(options); err != nil {
		return a, err
	}
	if a.key, err = readPublicKey(rest); err != nil {
		return a, err
	}
	return a, nil
}

// word cuts the first word off, which may be quoted.
func word(line string) (first, rest string, err error) {
	if quoted, ok := strings.CutPrefix(line, `"`); ok {
		first, rest, ok = strings.Cut(quoted, `"`)
		if !ok {
			return "", "", errors.New("a quote is not closed")
		}
	} else if at := strings.IndexAny(line, " \t"); at >= 0 {
		first, rest = line[:at], line[at:]
	} else {
		first = line
	}
	return first, strings.TrimSpace(rest), nil
}

// cutOptions finds the space after the options; those within quotes do not count.
func cutOptions(text string) (options, rest string, ok bool) {
	quoted := false
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ' ' || c == '\t'):
			return text[:i], strings.TrimSpace(text[i:]), true
		}
	}
	return "", "", false
}

func (a *allowedSigner) readOptions(text string) error {
	seen := map[string]bool{}
	for text != "" {
		end := 0
		for quoted := false; end < len(text) && (quoted || text[end] != ','); end++ {
			if text[end] == '"' {
				quoted = !quoted
			}
		}
		option := text[:end]
		if end < len(text) {
			end++
		}
		text = text[end:]
		name, value, _ := strings.Cut(option, "=")
		name = strings.ToLower(name)
		if seen[name] {
			return fmt.Errorf("option %s stands twice", bounded(name))
		}
		seen[name] = true
		if err := a.readOption(name, value); err != nil {
			return err
		}
	}
	if !a.after.IsZero() && !a.upTo.IsZero() && !a.after.Before(a.upTo) {
		return errors.New("valid-before is not later than valid-after")
	}
	return nil
}

func (a *allowedSigner) readOption(name, value string) (err error) {
	if name == "cert-authority" && value == "" {
		a.authority = true
		return nil
	}
	inner, ok := strings.CutPrefix(value, `"`)
	inner, closed := strings.CutSuffix(inner, `"`)
	if !ok || !closed {
		return fmt.Errorf("option %s is unknown or has no value in quotes", bounded(name))
	}
	switch name {
	case "namespaces":
		a.namespaces = strings.Split(inner, ",")
		return nil
	case "valid-after":
		a.after, err = readTime(inner)
	case "valid-before":
		a.upTo, err = readTime(inner)
	default:
		return fmt.Errorf("option %s is unknown", bounded(name))
	}
	return err
}

// readTime reads YYYYMMDD or YYYYMMDDHHMM[SS], in UTC where a Z follows, and else in the machine's time zone, as ssh-keygen does.
func readTime(text string) (time.Time, error) {
	zone := time.Local
	digits, utc := strings.CutSuffix(text, "Z")
	if utc {
		zone = time.UTC
	}
	for _, layout := range []string{"20060102", "200601021504", "20060102150405"} {
		if len(layout) != len(digits) {
			continue
		}
		if t, err := time.ParseInLocation(layout, digits, zone); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no time: write YYYYMMDD or YYYYMMDDHHMMSS, with a Z for UTC", bounded(text))
}

// matches tells whether a text fits a list of patterns of ssh_config(5): * and ? are wild, and what fits one with ! before it fits not at all.
func matches(patterns []string, text string) bool {
	found := false
	for _, p := range patterns {
		negated := strings.HasPrefix(p, "!")
		if !wild(strings.TrimPrefix(p, "!"), text) {
			continue
		}
		if negated {
			return false
		}
		found = true
	}
	return found
}

// wild matches without ever going back more than to the last star, so that no pattern takes long.
func wild(pattern, text string) bool {
	p, t, star, mark := 0, 0, -1, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, t
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			p++
			t++
		case star >= 0:
			mark++
			p, t = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
