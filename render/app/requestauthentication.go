package app

// RequestAuthentication is not described yet.
type RequestAuthentication struct {
	Escape `json:",inline"`
}

func (b *builder) requestAuthentication() {}
