package repos

import (
	"context"
	"errors"
	"io"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
)

// answer is a pack that a server sends.
type answer struct {
	*packReader
	body    io.ReadCloser
	session session
}

// drain reads what little is left after a pack, so that the connection can be used again.
func (a *answer) drain() { _, _ = io.Copy(io.Discard, io.LimitReader(a.body, 4<<10)) }

func (a *answer) close() {
	_ = a.body.Close()
	a.session.close()
}

// heard is what a server said that it can, and a session in which it can be asked for more.
type heard struct {
	session session
	adv     *packp.AdvRefs // without refs
}

// errNothing is what a maker of wants returns that finds nothing to ask for.
var errNothing = errors.New("there is nothing to ask for")

// wanting chooses what to ask for, by what a server has and can.
type wanting func(adv *packp.AdvRefs) (want, error)

// ask holds one conversation: the server lists its refs, is asked, and answers with a pack.
func (m *remote) ask(ctx context.Context, choose wanting) (*answer, error) {
	s, err := m.transport.open(ctx, toFetch)
	if err != nil {
		return nil, err
	}
	adv, err := m.hear(ctx, s)
	if err != nil {
		s.close()
		return nil, err
	}
	return m.askIn(ctx, s, adv, choose)
}

// askAgain is ask without the list of refs where the server can do without, as over HTTP. What the server does not answer
// to may be due to that, so it is asked once more from the beginning.
func (m *remote) askAgain(ctx context.Context, choose wanting) (*answer, error) {
	h := m.heard.Load()
	if h == nil {
		return m.ask(ctx, choose)
	}
	a, err := m.askIn(ctx, h.session, h.adv, choose)
	switch KindOf(err) {
	case KindProtocol, KindNotFound, KindCommitNotFound, KindRedirect, KindAuth:
		return m.ask(ctx, choose)
	}
	return a, err
}

// hear reads what a server lists and remembers what it can.
func (m *remote) hear(ctx context.Context, s session) (*packp.AdvRefs, error) {
	adv, err := s.refs(ctx)
	if err == nil && s.lasting() {
		can := packp.NewAdvRefs() // the refs may be many, and change
		can.Capabilities = adv.Capabilities
		m.heard.Store(&heard{s, can})
	}
	return adv, err
}

// askIn asks in a session that is open. It closes the session, unless there is an answer to be read.
func (m *remote) askIn(ctx context.Context, s session, adv *packp.AdvRefs, choose wanting) (_ *answer, err error) {
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	w, err := choose(adv)
	if err != nil {
		return nil, err
	}
	request, err := w.encode(adv.Capabilities)
	if err != nil {
		return nil, err
	}
	body, err := s.ask(ctx, request)
	if err != nil {
		return nil, err
	}
	p, err := newPackReader(body, w.depth, m.auth.scrub)
	if err != nil {
		_ = body.Close()
		return nil, err
	}
	return &answer{packReader: p, body: body, session: s}, nil
}
