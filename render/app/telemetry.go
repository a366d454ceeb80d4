package app

// Telemetry is not described yet.
type Telemetry struct {
	Escape `json:",inline"`
}

func (b *builder) telemetry() {}
