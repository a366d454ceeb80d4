package app

// VirtualService is not described yet.
type VirtualService struct {
	Escape `json:",inline"`
}

func (b *builder) virtualService() {}
