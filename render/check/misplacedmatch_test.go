package check_test

import (
	"testing"

	networking "istio.io/api/networking/v1alpha3"
	"istio.io/istio/pilot/pkg/networking/core/route"
	"istio.io/istio/pkg/config"
)

// TestMisplacedMatchIsAHeader asks Istio what it makes of a path that is written as a header: MOOR020 says that it is not ignored, other than the reference says.
func TestMisplacedMatchIsAHeader(t *testing.T) {
	m := route.TranslateRouteMatch(config.Config{}, &networking.HTTPMatchRequest{
		Headers:        map[string]*networking.StringMatch{"uri": {MatchType: &networking.StringMatch_Prefix{Prefix: "/orders"}}},
		WithoutHeaders: map[string]*networking.StringMatch{"method": {MatchType: &networking.StringMatch_Exact{Exact: "GET"}}},
	})
	if m.GetPrefix() != "/" || len(m.GetHeaders()) != 2 {
		t.Fatalf("the proxy gets %v", m)
	}
	if method := m.GetHeaders()[0]; method.GetName() != "method" || !method.GetInvertMatch() || !method.GetTreatMissingHeaderAsEmpty() {
		t.Errorf("withoutHeaders.method is %v", method)
	}
	if uri := m.GetHeaders()[1]; uri.GetName() != "uri" || uri.GetStringMatch().GetPrefix() != "/orders" {
		t.Errorf("headers.uri is %v", uri)
	}
}
