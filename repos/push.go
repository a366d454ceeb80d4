package repos

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// push asks the server for one change of a branch. The old commit goes with the request, so the server makes the
// change only if the branch is still there.
func (m *remote) push(ctx context.Context, v move) error {
	s, err := m.transport.open(ctx, toPush)
	if err != nil {
		return err
	}
	defer s.close()
	adv, err := s.refs(ctx)
	if err != nil {
		return m.mayNotPush(err)
	}
	request, err := v.encode(adv.Capabilities)
	if err != nil {
		return err
	}
	answer, err := s.ask(ctx, request)
	if err != nil {
		return m.mayNotPush(err)
	}
	defer func() { _ = answer.Close() }()
	said, report, err := readReport(answer, adv.Capabilities.Supports(capability.Sideband64k), m.auth.scrub)
	if err != nil {
		return m.mayNotPush(err)
	}
	return m.mayNotPush(v.outcome(report, said, m.auth.scrub))
}

// mayNotPush explains a server that lets us read, as it did a moment ago, and not push. Some say then that there is no
// such repository.
func (m *remote) mayNotPush(err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || (e.Kind != KindAuth && e.Kind != KindNotFound) {
		return err
	}
	hint := "the Secret lets us read this repository; pushing needs write access: a token's scope, or a deploy key's box for it"
	if m.auth.secrets() == nil {
		hint = "pushing needs a Secret with write access to this repository"
	}
	return fail(KindAuth, fmt.Errorf("no right to push: %w", e.Err), hint)
}

// encode writes the request in the form of gitprotocol-pack(5), "Reference Update Request".
func (v move) encode(caps *capability.List) ([]byte, error) {
	switch {
	case !caps.Supports(capability.ReportStatus):
		return nil, failf(KindProtocol, "", "the server lacks report-status")
	case v.to == "" && !caps.Supports(capability.DeleteRefs):
		return nil, failf(KindRefused, "let the server delete branches, or delete it by hand", "the server does not let anybody delete branches")
	}
	req := packp.NewReferenceUpdateRequest()
	if err := choose(req.Capabilities, caps, capability.ReportStatus, capability.Sideband64k, capability.Atomic, capability.Quiet); err != nil {
		return nil, err
	}
	req.Commands = []*packp.Command{{Name: plumbing.NewBranchReferenceName(v.branch), Old: v.from.hash(), New: v.to.hash()}}
	var b bytes.Buffer
	if err := req.Encode(&b); err != nil {
		return nil, fmt.Errorf("write request: %w", err)
	}
	if v.to != "" {
		b.Write(emptyPack())
	}
	return b.Bytes(), nil
}

// emptyPack is what goes with a change for which the server has everything; only a deletion has no pack. The server
// checks that it has all that the new commit needs.
func emptyPack() []byte {
	pack := []byte("PACK\x00\x00\x00\x02\x00\x00\x00\x00")
	sum := sha1.Sum(pack) // the format's own checksum
	return append(pack, sum[:]...)
}

// maxReport bounds the answer to a push.
const maxReport = 64 << 10

// readReport reads what became of a push, and what the server tells people about it. It reads to the end, as a server
// may stop its own work on the push when we leave early; but a report that is there counts, however the rest ends.
func readReport(r io.Reader, banded bool, scrub func(string) string) (said string, report *packp.ReportStatus, err error) {
	bands := &packReader{lines: pktline.NewScanner(r), scrub: scrub}
	if banded {
		r = bands
	}
	text, readErr := io.ReadAll(io.LimitReader(r, maxReport))
	said = scrub(plainWords(bands.said.String()))
	report = packp.NewReportStatus()
	err = report.Decode(bytes.NewReader(text))
	refusal, isRefusal := errors.AsType[*pktline.ErrorLine](err)
	switch {
	case err == nil:
		return said, report, nil
	case isRefusal:
		return said, nil, refused(scrub(refusal.Text))
	case readErr != nil && KindOf(readErr) == "":
		return said, nil, failf(KindUnavailable, unsureHint, "the connection ended in the middle of the answer: %w", readErr)
	case readErr != nil:
		return said, nil, readErr
	case said != "":
		return said, nil, failf(KindProtocol, unsureHint, "the server does not report what became of the push; it says: %s", said)
	}
	return said, nil, failf(KindProtocol, unsureHint, "the server does not report what became of the push: %s", scrub(err.Error()))
}

// plainWords takes the frame off what hooks print: the word error before each line, also before the empty ones.
func plainWords(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		for cut := true; cut; {
			line, cut = strings.CutPrefix(strings.TrimSpace(line), "error:")
		}
		if line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

const unsureHint = "the branch may have moved nevertheless, which the next pass sees"

// outcome turns the server's report into an error, or none.
func (v move) outcome(report *packp.ReportStatus, said string, scrub func(string) string) error {
	const done = "ok"
	words := func(status string) string {
		if said == "" {
			return scrub(status)
		}
		return scrub(status) + "; it says: " + said
	}
	if report.UnpackStatus != done {
		return failf(KindUnavailable, "nothing was changed; look at the server's disk and logs", "the server could not take the push: %s", words(report.UnpackStatus))
	}
	for _, c := range report.CommandStatuses {
		switch {
		case c.ReferenceName != plumbing.NewBranchReferenceName(v.branch):
		case c.Status == done:
			return nil
		case strings.Contains(strings.ToLower(c.Status+said), "permission denied"): // it is the user, not the branch
			return failf(KindAuth, "", "the server refused to %s: %s", v, words(c.Status))
		default:
			return failf(KindRefused, "nothing was changed; let the user of this credential push to this branch: see its protection, its hooks and their words",
				"the server refused to %s: %s", v, words(c.Status))
		}
	}
	return failf(KindProtocol, unsureHint, "the server does not say what became of %s", cmp.Or(v.branch, "the branch"))
}
