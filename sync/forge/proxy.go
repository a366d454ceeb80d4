package forge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
)

const proxyHint = "check the Secret of spec.source.proxySecretRef, or HTTPS_PROXY of the agent: that address is a proxy, and lets the agent reach the forge's API"

// proxyError is an HTTP proxy that does not make a tunnel.
type proxyError struct{ status string }

func (e *proxyError) Error() string { return "the proxy answers " + e.status }

// proxyAnswer sees what an HTTP proxy answers to http.Transport.
func proxyAnswer(_ context.Context, _ *url.URL, _ *http.Request, answer *http.Response) error {
	if answer.StatusCode == http.StatusOK {
		return nil
	}
	return &proxyError{fmt.Sprintf("HTTP %d", answer.StatusCode)}
}

// isProxy tells the errors of http.Transport that come from the way to the proxy, or from the proxy itself.
func isProxy(err error) bool {
	if _, ok := errors.AsType[*proxyError](err); ok {
		return true
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && (op.Op == "proxyconnect" || strings.HasPrefix(op.Op, "socks"))
}

func (f *Forge) proxyTrouble(err error) *Error {
	refused, ok := errors.AsType[*proxyError](err)
	switch {
	case ok && strings.HasSuffix(refused.status, " 407"), strings.Contains(err.Error(), "authentication"): // of SOCKS, for which the library has no type
		return failf(KindProxy, "give the proxy's username and password in the Secret of spec.source.proxySecretRef, or in HTTPS_PROXY of the agent",
			"the proxy does not accept the credentials: %w", f.clean(err))
	case ok:
		return failf(KindProxy, proxyHint, "%w", refused)
	}
	return failf(KindProxy, proxyHint, "no way through the proxy: %w", f.clean(err))
}
