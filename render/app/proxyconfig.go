package app

// ProxyConfig is not described yet.
type ProxyConfig struct {
	Escape `json:",inline"`
}

func (b *builder) proxyConfig() {}
