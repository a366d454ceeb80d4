package signature

import (
	"bytes"
	"strconv"
	"time"
)

// maxSignature bounds the text of one signature. That of an RSA key with 16,384 bits takes 3 KiB.
const maxSignature = 64 << 10

// signed is an object taken apart.
type signed struct {
	payload []byte
	text    []byte // of the signature, with its frame
	// at is when it was made by the clock of whoever made it; zero where that cannot be read.
	at time.Time
}

// readCommit takes a commit and its signature apart: the header gpgsig, whose further lines begin with a space.
func readCommit(raw []byte) (signed, error) {
	s, err := dropSignatures(raw, "gpgsig")
	if err != nil {
		return s, err
	}
	if s.text == nil {
		return s, refuse(Unsigned, "", "sign it with git commit -S; git log --show-signature tells who signed what", "it has no signature")
	}
	s.at = clock(s.payload, "committer ")
	return s, nil
}

// readTag takes a tag and its signature apart: what begins with the last line of the message that opens a signature.
func readTag(raw []byte) (signed, error) {
	start := -1
	for at := 0; at < len(raw); {
		if opensSignature(raw[at:]) {
			start = at
		}
		next := bytes.IndexByte(raw[at:], '\n')
		if next < 0 {
			break
		}
		at += next + 1
	}
	if start < 0 {
		return signed{}, refuse(Unsigned, "", "sign it with git tag -s", "it has no signature")
	}
	s, err := dropSignatures(raw[:start], "")
	if err != nil {
		return s, err
	}
	s.text = raw[start:]
	if len(s.text) > maxSignature {
		return s, malformed("its signature has %d bytes, more than %d", len(s.text), maxSignature)
	}
	s.at = clock(s.payload, "tagger ")
	return s, nil
}

// dropSignatures gives the object without the headers that hold signatures, and the text of the one with this name.
func dropSignatures(raw []byte, name string) (signed, error) {
	s := signed{payload: make([]byte, 0, len(raw))}
	inside, ours := false, false
	for rest := raw; len(rest) > 0; {
		line := rest
		if end := bytes.IndexByte(rest, '\n'); end >= 0 {
			line = rest[:end+1]
		}
		if len(line) == 1 && line[0] == '\n' { // the message begins
			s.payload = append(s.payload, rest...)
			break
		}
		rest = rest[len(line):]
		if line[0] == ' ' && inside {
			if ours {
				s.text = append(s.text, line[1:]...)
			}
		} else {
			key, value, _ := bytes.Cut(line, []byte(" "))
			inside, ours = bytes.HasPrefix(key, []byte("gpgsig")), false
			switch {
			case !inside:
			case name != "" && string(key) == name && s.text == nil:
				ours = true
				s.text = append([]byte{}, value...)
			case name != "" && string(key) == name:
				return s, malformed("it has two headers %s", name)
			case string(key) != "gpgsig-sha256":
				return s, malformed("it has a header %q", bounded(string(key)))
			}
		}
		if !inside {
			s.payload = append(s.payload, line...)
		}
		if len(s.text) > maxSignature {
			return s, malformed("its signature has more than %d bytes", maxSignature)
		}
	}
	return s, nil
}

// clock reads the time of a header such as "committer Name <mail> 1700000000 +0100".
func clock(object []byte, key string) time.Time {
	header, _, _ := bytes.Cut(object, []byte("\n\n"))
	for line := range bytes.SplitSeq(header, []byte("\n")) {
		value, ok := bytes.CutPrefix(line, []byte(key))
		if !ok {
			continue
		}
		fields := bytes.Fields(value[bytes.LastIndexByte(value, '>')+1:])
		if len(fields) == 0 {
			return time.Time{}
		}
		seconds, err := strconv.ParseInt(string(fields[0]), 10, 64)
		if err != nil || seconds < 0 {
			return time.Time{}
		}
		return time.Unix(seconds, 0)
	}
	return time.Time{}
}

// bounded keeps a text of somebody else short enough for a message.
func bounded(text string) string {
	if len(text) > 100 {
		return text[:100] + "…"
	}
	return text
}
