package signature

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
)

// The frames around signatures and keys.
const (
	framePGP        = "PGP SIGNATURE"
	framePGPMessage = "PGP MESSAGE"
	frameSSH        = "SSH SIGNATURE"
	frameX509       = "SIGNED MESSAGE"
	framePublic     = "PGP PUBLIC KEY BLOCK"
	framePrivate    = "PGP PRIVATE KEY BLOCK"
)

func begin(frame string) []byte { return []byte("-----BEGIN " + frame + "-----") }

// opensSignature tells whether a line begins a signature, for Git.
func opensSignature(line []byte) bool {
	for _, frame := range []string{framePGP, framePGPMessage, frameSSH, frameX509} {
		if bytes.HasPrefix(line, begin(frame)) {
			return true
		}
	}
	return false
}

// unframe decodes a text that is one frame and nothing else. OpenPGP has headers, an empty line and a checksum in it; the latter is no protection
// and not looked at.
func unframe(text []byte, frame string) ([]byte, error) {
	body, ok := strings.CutPrefix(string(text), string(begin(frame)))
	if !ok {
		return nil, fmt.Errorf("it does not begin with %s", begin(frame))
	}
	body, after, ok := strings.Cut(body, "-----END "+frame+"-----")
	if !ok {
		return nil, fmt.Errorf("its end is missing")
	}
	if strings.TrimSpace(after) != "" {
		return nil, fmt.Errorf("something follows after its end")
	}
	lines := strings.Split(strings.ReplaceAll(body, "\r\n", "\n"), "\n")
	if strings.TrimSpace(lines[0]) != "" {
		return nil, fmt.Errorf("something follows on its first line")
	}
	lines = lines[1:]
	if frame != frameSSH {
		for len(lines) > 0 && strings.TrimSpace(lines[0]) != "" {
			if !strings.Contains(lines[0], ":") {
				return nil, fmt.Errorf("the empty line before its data is missing")
			}
			lines = lines[1:]
		}
	}
	var data strings.Builder
	for i, line := range lines {
		line = strings.TrimSpace(line)
		if frame != frameSSH && len(line) == 5 && line[0] == '=' {
			if strings.TrimSpace(strings.Join(lines[i+1:], "")) != "" {
				return nil, fmt.Errorf("something follows after its checksum")
			}
			break
		}
		data.WriteString(line)
	}
	decoded, err := base64.StdEncoding.Strict().DecodeString(data.String())
	if err != nil {
		return nil, fmt.Errorf("its data is not base64")
	}
	return decoded, nil
}
