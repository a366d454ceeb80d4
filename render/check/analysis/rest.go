package analysis

import (
	"slices"
	"strings"

	meshconfig "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"
	"istio.io/istio/pkg/config/mesh"
	"istio.io/istio/pkg/config/resource"
	"istio.io/istio/pkg/jwt"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/mooring-dev/mooring/render/check/world"
)

func newDefaultMesh() *meshconfig.MeshConfig {
	return mesh.DefaultMeshConfig()
}

// emptyNamespace judges that the workloads of a namespace get no proxy. One without workloads, such as one for Mooring's own objects, needs none.
func (r *run) emptyNamespace(c *claim) verdict {
	if len(r.workloads().byNamespace[resource.Namespace(c.object.ID.Name)]) == 0 {
		return verdict{}
	}
	return c.kept()
}

// ofMesh judges what depends on the configuration of the mesh.
func (r *run) ofMesh(c *claim) verdict {
	if r.meshKnown() {
		return c.kept()
	}
	return r.notKnown(c, "mesh configuration for", c.object.ID.String(), "", "ConfigMap")
}

func (r *run) meshKnown() bool {
	return r.mesh.Err == nil && (r.mesh.Source != nil || r.knowsAll("", "ConfigMap"))
}

// unknownRegistry judges that a network names a registry that nobody has. The analyzer is not given the Secrets of other clusters, since it never
// forgets one.
func (r *run) unknownRegistry(c *claim) verdict {
	for _, o := range r.world.Of("", "Secret") {
		if o.GetLabels()[multiCluster] != "true" {
			continue
		}
		if o.MetadataOnly {
			return r.notKnown(c, "registry", c.parameter(0), "", "Secret")
		}
		for _, field := range []string{"data", "stringData"} {
			if _, ok := textsAt(o, field)[c.parameter(0)]; ok {
				return verdict{}
			}
		}
	}
	if !r.knowsAll("", "Secret") {
		return r.notKnown(c, "registry", c.parameter(0), "", "Secret")
	}
	return c.at("data.meshNetworks")
}

// webhook judges that an injection webhook calls a Service that does not exist.
func (r *run) webhook(c *claim) verdict {
	const words = "Injector refers to a control plane service that does not exist: "
	full, ok := strings.CutPrefix(c.parameter(0), words)
	if !ok {
		return c.kept()
	}
	namespace, name, _ := strings.Cut(strings.TrimSuffix(full, "."), "/")
	switch {
	case r.find("", "Service", namespace, name) != nil:
		return verdict{}
	case r.world.Knows("", "Service", namespace):
		return c.kept()
	}
	return r.notKnown(c, "Service", namespace+"/"+name, "", "Service")
}

// unfilledImage judges that no webhook fills in the image of a proxy.
func (r *run) unfilledImage(c *claim) verdict {
	const group, kind = "admissionregistration.k8s.io", "MutatingWebhookConfiguration"
	if !r.knowsAll(group, kind) {
		return r.notKnown(c, "injection of", c.object.ID.String(), group, kind)
	}
	if !r.knowsAll("", "Namespace") {
		return r.notKnown(c, "injection of", c.object.ID.String(), "", "Namespace")
	}
	return c.kept()
}

// uncheckedClaim judges that a claim is routed by that nobody checks. The analyzer takes any one of several claims, says so for each Pod of the
// gateway, and looks for rules of the whole mesh in istio-system alone.
func (r *run) uncheckedClaim(c *claim) verdict {
	if r.index().remote || !r.world.Knows("security.istio.io", "RequestAuthentication", r.mesh.RootNamespace) && r.world.Live() {
		return r.notKnown(c, "tokens for", c.object.ID.String(), "security.istio.io", "RequestAuthentication")
	}
	gateway := c.parameter(1)
	for _, o := range r.world.Of("security.istio.io", "RequestAuthentication") {
		if o.ID.Namespace != r.mesh.RootNamespace {
			continue
		}
		spec, ok := specOf[*security.RequestAuthentication](o)
		if !ok || r.selectsAsGateway(spec.GetSelector().GetMatchLabels(), gateway) {
			return verdict{}
		}
	}
	spec, _ := specOf[*networking.VirtualService](c.object)
	claims := claimsOf(spec)
	if len(claims) == 0 {
		return verdict{}
	}
	v := c.said("spec.http", claims[0], gateway, c.parameter(2))
	v.group = gateway
	return v
}

// selectsAsGateway says whether labels select a subset of what the selector of a Gateway does.
func (r *run) selectsAsGateway(of map[string]string, gateway string) bool {
	namespace, name, _ := strings.Cut(gateway, "/")
	o := r.find(istioNetworking, "Gateway", namespace, name)
	if o == nil {
		return false
	}
	spec, _ := specOf[*networking.Gateway](o)
	return labels.SelectorFromSet(of).Matches(labels.Set(spec.GetSelector()))
}

// claimsOf lists the claims that a VirtualService routes by, sorted.
func claimsOf(spec *networking.VirtualService) []string {
	var claims []string
	for _, route := range spec.GetHttp() {
		for _, match := range route.GetMatch() {
			for _, headers := range []map[string]*networking.StringMatch{match.GetHeaders(), match.GetWithoutHeaders()} {
				for name := range headers {
					if jwt.ToRoutingClaim(name).Match {
						claims = append(claims, name)
					}
				}
			}
		}
	}
	slices.Sort(claims)
	return slices.Compact(claims)
}

// unasked lists what the analyzers had no chance to find, because they were not given what they compare the objects of the commit with.
func (r *run) unasked() {
	if !r.knowsAll("", "Pod") {
		why := r.why("", "Pod")
		r.eachOwn("networking.istio.io", "VirtualService", func(o *world.Object) {
			spec, ok := specOf[*networking.VirtualService](o)
			if ok && len(claimsOf(spec)) > 0 && slices.ContainsFunc(spec.Gateways, func(g string) bool { return g != "mesh" }) {
				r.unknown.add("IST0149", "tokens for", o.ID.String(), why)
			}
		})
		for _, gk := range [][2]string{
			{"security.istio.io", "AuthorizationPolicy"},
			{"security.istio.io", "RequestAuthentication"},
			{"telemetry.istio.io", "Telemetry"},
			{"extensions.istio.io", "WasmPlugin"},
		} {
			r.eachOwn(gk[0], gk[1], func(o *world.Object) {
				if len(textsAt(o, "spec", "selector", "matchLabels")) > 0 {
					r.unknown.add("IST0166", "workloads of", o.ID.String(), why)
				}
			})
		}
	}
	if !r.knowsAll("apps", "Deployment") && !r.hasIstiod() {
		r.eachOwn("security.istio.io", "RequestAuthentication", func(o *world.Object) {
			r.unknown.add("IST0175", "istiod for", o.ID.String(), r.why("apps", "Deployment"))
		})
	}
	r.eachOwn("apps", "Deployment", func(o *world.Object) {
		if !r.world.Knows("", "Service", o.ID.Namespace) {
			for _, code := range []string{"IST0116", "IST0137"} {
				r.unknown.add(code, "Services of", o.ID.String(), r.why("", "Service"))
			}
		}
	})
}

// hasIstiod says whether istiod is among the Deployments, as authn.BlockedCIDRsAnalyzer finds it.
func (r *run) hasIstiod() bool {
	return slices.ContainsFunc(r.world.Of("apps", "Deployment"), func(o *world.Object) bool { return o.GetLabels()["app"] == "istiod" })
}

// eachOwn visits the objects of the commit of a kind.
func (r *run) eachOwn(group, kind string, visit func(*world.Object)) {
	for _, o := range r.world.Of(group, kind) {
		if !o.Foreign {
			visit(o)
		}
	}
}
