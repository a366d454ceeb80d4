package app

// PeerAuthentication is not described yet.
type PeerAuthentication struct {
	Escape `json:",inline"`
}

func (b *builder) peerAuthentication() {}
