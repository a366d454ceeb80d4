package app

// Gateway is not described yet.
type Gateway struct {
	Escape `json:",inline"`
}

func (b *builder) gateway() {}
