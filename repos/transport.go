package repos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// service is the program of Git that a server is asked to run.
type service string

const (
	toFetch service = "git-upload-pack"
	toPush  service = "git-receive-pack"
)

// transport reaches a server. There are three: HTTP, SSH and, for tests, Git's programs on this machine.
type transport interface {
	// open begins a conversation that is over when ctx ends.
	open(ctx context.Context, with service) (session, error)
}

// session is one conversation with a service: the server lists its refs, then answers one request or is let go.
type session interface {
	// refs reads what the server advertises; it is called once and first.
	refs(ctx context.Context) (*packp.AdvRefs, error)
	// ask sends a request, for objects or for a change of refs, and returns the answer.
	ask(ctx context.Context, request []byte) (io.ReadCloser, error)
	// lasting is true where more can be asked after that, also when the session was closed: every question stands alone.
	lasting() bool
	close()
}

// maxAdvertisement bounds the list of refs, in bytes: about 400,000 refs.
const maxAdvertisement = 32 << 20

const notGitHint = "check that the url is that of the repository itself and not of its web page"

// decodeRefs reads an advertisement. An empty repository has one without refs.
func decodeRefs(r io.Reader) (*packp.AdvRefs, error) {
	limited := &io.LimitedReader{R: r, N: maxAdvertisement}
	adv := packp.NewAdvRefs()
	err := adv.Decode(limited)
	switch {
	case err == nil:
		if formats := adv.Capabilities.Get("object-format"); len(formats) > 0 && formats[0] != "sha1" {
			return nil, failf(KindProtocol, "convert it to SHA-1, or use a mirror", "the repository uses %s ids, which are not supported", clean(formats[0]))
		}
		return adv, nil
	case errors.Is(err, packp.ErrEmptyAdvRefs):
		return packp.NewAdvRefs(), nil
	case limited.N <= 0:
		return nil, failf(KindLimit, "", "the list of refs is longer than %d MiB", maxAdvertisement>>20)
	}
	return nil, err
}

// want is a request for one pack.
type want struct {
	objects  []plumbing.Hash
	depth    int             // 0 is all of the history
	have     []plumbing.Hash // commits of which everything at depth 1 is here
	filter   packp.Filter    // what the server, if it can, shall leave out
	standing bool            // the pack must stand alone, without bases that are only here
}

// encode writes the request for a server with these capabilities. Its form is that of protocol version 0, described in
// gitprotocol-pack(5), which every server speaks.
func (w want) encode(caps *capability.List) ([]byte, error) {
	if !caps.Supports(capability.Sideband64k) {
		return nil, failf(KindProtocol, "", "the server lacks side-band-64k")
	}
	req := packp.NewUploadPackRequest()
	use := []capability.Capability{capability.Sideband64k, capability.OFSDelta, capability.NoProgress, capability.MultiACK}
	if len(w.have) > 0 && !w.standing {
		use = append(use, capability.ThinPack) // or the server does not consider what we have
	}
	if err := choose(req.Capabilities, caps, use...); err != nil {
		return nil, err
	}
	req.Wants = append(req.Wants, w.objects...)
	if w.depth > 0 {
		if err := req.Capabilities.Set(capability.Shallow); err != nil {
			return nil, fmt.Errorf("write request: %w", err)
		}
		req.Depth = packp.DepthCommits(w.depth)
		req.Shallows = append(req.Shallows, w.have...)
	}
	if w.filter != "" && caps.Supports(capability.Filter) {
		if err := req.Capabilities.Set(capability.Filter); err != nil {
			return nil, fmt.Errorf("write request: %w", err)
		}
		req.Filter = w.filter
	}
	req.Haves = append(req.Haves, w.have...)

	var b bytes.Buffer
	if err := req.UploadRequest.Encode(&b); err != nil {
		return nil, fmt.Errorf("write request: %w", err)
	}
	if err := req.UploadHaves.Encode(&b, false); err != nil {
		return nil, fmt.Errorf("write request: %w", err)
	}
	if err := pktline.NewEncoder(&b).EncodeString("done\n"); err != nil {
		return nil, fmt.Errorf("write request: %w", err)
	}
	return b.Bytes(), nil
}

// choose puts those capabilities into a request that the server has, and our name.
func choose(request, offered *capability.List, use ...capability.Capability) error {
	for _, c := range use {
		if offered.Supports(c) {
			if err := request.Set(c); err != nil {
				return fmt.Errorf("write request: %w", err)
			}
		}
	}
	if offered.Supports(capability.Agent) {
		if err := request.Set(capability.Agent, "mooring"); err != nil {
			return fmt.Errorf("write request: %w", err)
		}
	}
	return nil
}

// errNotOurs is a server that does not hand out a commit because no ref points at it.
var errNotOurs = errors.New("the server hands out only what a ref points at")

// packReader reads the answer to a request: the edges of the history, what the server knows of ours, and then the pack
// in band 1 of the lines that follow.
type packReader struct {
	lines *pktline.Scanner
	scrub func(string) string
	said  saying // what the server tells people
	// shallow tells that the history was cut off somewhere.
	shallow bool
	rest    []byte
	err     error
}

// newPackReader reads up to where the pack begins. With a depth the edges come first, ended by a flush.
func newPackReader(r io.Reader, depth int, scrub func(string) string) (*packReader, error) {
	p := &packReader{lines: pktline.NewScanner(r), scrub: scrub}
	inEdges := depth > 0
	for p.lines.Scan() {
		line := p.lines.Bytes()
		switch {
		case inEdges && len(line) == 0:
			inEdges = false
		case inEdges && bytes.HasPrefix(line, []byte("shallow ")):
			p.shallow = true
		case inEdges && bytes.HasPrefix(line, []byte("unshallow ")):
		case !inEdges && (bytes.HasPrefix(line, []byte("ACK ")) || bytes.HasPrefix(line, []byte("NAK"))):
		case !inEdges && len(line) > 0 && line[0] <= 3:
			return p, p.band(line)
		default:
			return nil, failf(KindProtocol, "", "the server answered %q where a pack was expected", p.scrub(string(line)))
		}
	}
	return nil, p.broken()
}

// Read gives the bytes of the pack.
func (p *packReader) Read(b []byte) (int, error) {
	for len(p.rest) == 0 && p.err == nil {
		switch {
		case !p.lines.Scan():
			p.err = p.broken()
		case len(p.lines.Bytes()) == 0:
			p.err = io.EOF // the flush that ends it all
		default:
			p.err = p.band(p.lines.Bytes())
		}
	}
	if len(p.rest) == 0 {
		return 0, p.err
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// band takes one line: 1 is the pack, 2 is what the server tells people, 3 is its last words.
func (p *packReader) band(line []byte) error {
	switch line[0] {
	case 1:
		p.rest = line[1:]
		return nil
	case 2:
		_, err := p.said.Write(line[1:])
		return err
	case 3:
		return failf(KindProtocol, "", "the server gave up: %s", p.scrub(string(line[1:])))
	}
	return failf(KindProtocol, "", "the server used the unknown side band %d", line[0])
}

// broken explains why there are no more lines.
func (p *packReader) broken() error {
	err := p.lines.Err()
	if e, ok := errors.AsType[*pktline.ErrorLine](err); ok {
		return refused(p.scrub(e.Text))
	}
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	if errors.Is(err, pktline.ErrInvalidPktLen) {
		return failf(KindProtocol, "", "the server's answer is garbled: %w", err)
	}
	return failf(KindUnavailable, "", "the connection ended in the middle of the answer: %w", err)
}

// refused sorts what a server says when it does not serve.
func refused(text string) error {
	low := strings.ToLower(text)
	has := func(parts ...string) bool {
		for _, part := range parts {
			if strings.Contains(low, part) {
				return true
			}
		}
		return false
	}
	switch {
	case has("not our ref", "unadvertised object", "want ", "not valid"):
		return fail(KindCommitNotFound, fmt.Errorf("%w (%s)", errNotOurs, text), "")
	case has("not found", "does not exist", "not appear to be a git", "no such", "could not be found", "cannot find", "not exported"):
		return failf(KindNotFound, notFoundHint, "the server says: %s", text)
	case has("denied", "not allowed", "unauthorized", "forbidden", "not authorized", "access", "permission", "read only", "read-only"):
		return failf(KindAuth, authHint, "the server says: %s", text)
	}
	return failf(KindProtocol, "", "the server says: %s", text)
}

const (
	notFoundHint = "check the url; most forges say so also when the credentials do not reach to a private repository"
	authHint     = "check the Secret: that it is the right one, has not run out, and may read this repository"
)
