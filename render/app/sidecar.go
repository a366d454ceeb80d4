package app

// Sidecar is not described yet.
type Sidecar struct {
	Escape `json:",inline"`
}

func (b *builder) sidecar() {}
