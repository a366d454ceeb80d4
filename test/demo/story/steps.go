package story

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
	"github.com/mooring-dev/mooring/test/world"
)

// Lines that come up more than once.
const (
	weights = `kubectl -n shop-prod get virtualservice catalog -o jsonpath='{.spec.http[0].route[*].weight}'`
	push    = `git push --quiet`
)

func commit(message string) string {
	return fmt.Sprintf("git commit --quiet --all --message %q", message)
}

// events shows the newest Event of a reason.
func events(name, reason string) string {
	return fmt.Sprintf(`kubectl -n moorings get events --field-selector involvedObject.name=%s,reason=%s -o custom-columns=:.message | tail -n 1`, name, reason)
}

// firstSync makes Moorings and waits until the cluster is what Git says.
func (s *Story) firstSync(ctx context.Context) error {
	s.tell.Say("The repository holds a shop of four services, with overlays for dev, staging and prod, and a Mooring for each.")
	point := fmt.Sprintf(`sed -i 's#url: .*#url: %s#; s#interval: .*#interval: 5s#' moorings/*.yaml`, s.url)
	if s.secret != nil {
		point = fmt.Sprintf(`sed -i 's#url: .*#url: %s#; s#interval: .*#interval: 5s#; s|# secretRef: {name: git-auth}.*|secretRef: {name: git-auth}|' moorings/*.yaml`, s.url)
	}
	return steps(
		func() error { return s.run(ctx, "git clone --quiet "+s.world.Git.RepoURL(RepoName)+" && cd mesh") },
		func() error {
			s.tell.Say("The Moorings get the address of this Git server. They ask it every five seconds, so that the demo is quick.")
			return s.run(ctx, point)
		},
		func() error { return s.run(ctx, commit("moorings: where the repository is")+" && "+push) },
		func() error { return s.run(ctx, "kubectl apply -f moorings/namespace.yaml", "created") },
		func() error { return s.makeSecret(ctx) },
		func() error {
			s.tell.Say("Certificates are not in this repository. They are beside the gateway, and a commit that names one that is not there is refused. For the demo, empty ones do:")
			return s.run(ctx, "kubectl -n istio-system create secret generic shop-staging-tls && kubectl -n istio-system create secret generic shop-prod-tls", "created")
		},
		func() error { return s.run(ctx, "kubectl apply -k moorings", "shop-prod created") },
		func() error { return s.inForce(ctx, "shop-dev", "shop-staging", "shop-prod") },
		func() error {
			s.tell.Say("A moment later:")
			return s.run(ctx, "mooring get -n moorings", "shop-dev", "shop-staging", "shop-prod", "Applied")
		},
		func() error {
			return s.run(ctx, "kubectl -n shop-prod get virtualservices,destinationrules", "virtualservice.networking.istio.io/catalog")
		},
		func() error { return s.run(ctx, weights, "90 10") },
	)
}

// makeSecret makes the Secret with which the agent reads the repository, where it needs one.
func (s *Story) makeSecret(ctx context.Context) error {
	if s.secret == nil {
		return nil
	}
	line := "kubectl -n moorings create secret generic git-auth"
	for name, value := range s.secret {
		file := filepath.Join(s.world.Dir, name)
		if err := os.WriteFile(file, []byte(value), 0o600); err != nil {
			return err
		}
		line += " --from-file=" + file
	}
	return s.run(ctx, line, "created")
}

// canary changes one number in Git.
func (s *Story) canary(ctx context.Context) error {
	s.tell.Say("30 percent of prod's traffic shall see the new catalog. It is checked here as the agent will check it, then pushed.")
	return steps(
		func() error {
			return s.run(ctx, "sed -i 's/weight: 90/weight: 70/; s/weight: 10/weight: 30/' overlays/prod/canary.yaml")
		},
		func() error { return s.run(ctx, "git diff -U0 | grep '^[-+] '", "+      weight: 30") },
		func() error { return s.run(ctx, "mooring check overlays/prod") },
		func() error { return s.run(ctx, commit("prod: 30 percent to the new catalog")+" && "+push) },
		func() error {
			s.tell.Say("It would be taken up within five seconds. Those who cannot wait say so:")
			return s.run(ctx, "mooring sync shop-prod -n moorings", "Ready=True Applied")
		},
		func() error { return s.inForce(ctx, "shop-prod") },
		func() error { return s.run(ctx, weights, "70 30") },
		func() error {
			return s.becomes(ctx, events("shop-prod", "Applied"), "configured VirtualService/shop-prod/catalog (/spec/http")
		},
	)
}

// drift changes the cluster by hand.
func (s *Story) drift(ctx context.Context) error {
	s.tell.Say("At night somebody sends everything to the new catalog, and tells nobody.")
	return steps(
		func() error {
			return s.run(ctx, `kubectl -n shop-prod patch virtualservice catalog --type=json -p '[{"op":"replace","path":"/spec/http/0/route/0/weight","value":0},{"op":"replace","path":"/spec/http/0/route/1/weight","value":100}]'`, "patched")
		},
		func() error {
			s.tell.Say("The agent comes by, puts it back, and says what it was and who did it:")
			return s.becomes(ctx, weights, "70 30")
		},
		func() error {
			return s.becomes(ctx, events("shop-prod", "DriftCorrected"), "VirtualService/shop-prod/catalog (/spec/http", "by kubectl-patch")
		},
	)
}

// preview shows a plan before it is run.
func (s *Story) preview(ctx context.Context) error {
	s.tell.Say("Staging is suspended while its next commit is looked at. The plan that diff prints is the plan that the agent would run.")
	return steps(
		func() error { return s.run(ctx, "mooring suspend shop-staging -n moorings", "suspended at") },
		// An earlier pass may still be under way, and would take the commit up.
		func() error {
			return s.until(ctx, "it is suspended", world.HasReason(v1alpha1.ReasonSuspended), "shop-staging")
		},
		func() error {
			return s.run(ctx, "sed -i '0,/weight: 50/s//weight: 0/; s/weight: 50/weight: 100/' overlays/staging/canary.yaml && "+
				commit("staging: everybody sees the new catalog")+" && "+push)
		},
		func() error {
			return s.exits(ctx, 1, "mooring diff shop-staging -n moorings", "VirtualService/shop-staging/catalog", "weight")
		},
		func() error { return s.run(ctx, "mooring resume shop-staging -n moorings", "resumed") },
		func() error { return s.inForce(ctx, "shop-staging") },
		func() error {
			return s.run(ctx, `kubectl -n shop-staging get virtualservice catalog -o jsonpath='{.spec.http[0].route[*].weight}'`, "0 100")
		},
		func() error {
			s.tell.Say("Now there is no difference left (exit code 0):")
			return s.run(ctx, "mooring diff shop-staging -n moorings")
		},
	)
}

// prune drops an object from Git.
func (s *Story) prune(ctx context.Context) error {
	s.tell.Say("Nobody calls the fraud check any more.")
	return steps(
		func() error { return s.run(ctx, "kubectl -n shop-prod get serviceentries", "fraud-check") },
		func() error {
			return s.run(ctx, "git rm --quiet overlays/prod/fraud-check.yaml && sed -i '/fraud-check/d' overlays/prod/kustomization.yaml")
		},
		func() error { return s.run(ctx, commit("prod: no fraud check")+" && "+push) },
		func() error {
			return s.run(ctx, "mooring sync shop-prod -n moorings", "Ready=True Applied")
		},
		func() error { return s.inForce(ctx, "shop-prod") },
		func() error {
			out, err := s.shell(ctx, 0, "kubectl -n shop-prod get serviceentries -o name")
			if err == nil && out != "serviceentry.networking.istio.io/payment-provider" {
				err = fmt.Errorf("expected the ServiceEntry payment-provider and no other, got %s", out)
			}
			return err
		},
		func() error { return s.run(ctx, "kubectl -n shop-prod get serviceentries") },
		func() error {
			return s.becomes(ctx, events("shop-prod", "Applied"), "deleted ServiceEntry/shop-prod/fraud-check")
		},
	)
}

// broken pushes a commit that must not reach the mesh, and mends it.
func (s *Story) broken(ctx context.Context) error {
	s.tell.Say("A typing mistake. An unknown field that is dropped in silence would take the timeout with it.")
	return steps(
		func() error { return s.run(ctx, "sed -i 's/timeout: 5s/timout: 3s/' base/cart/route.yaml") },
		func() error { return s.run(ctx, commit("cart: a shorter timeout")+" && "+push) },
		func() error {
			return s.exits(ctx, 1, "mooring sync shop-prod -n moorings", "Ready=False CheckFailed", "base/cart/route.yaml:", "timout", "stays in force")
		},
		func() error {
			return s.until(ctx, "the commit is refused", world.HasReason(v1alpha1.ReasonCheckFailed), "shop-dev", "shop-staging", "shop-prod")
		},
		func() error { return s.run(ctx, "kubectl -n moorings get moorings", "CheckFailed") },
		func() error {
			s.tell.Say("The last good commit stays in force, also against kubectl:")
			return s.run(ctx, "kubectl -n shop-prod delete virtualservice cart", "deleted")
		},
		func() error { return s.becomes(ctx, "kubectl -n shop-prod get virtualservice cart", "cart") },
		func() error {
			return s.becomes(ctx, `kubectl -n shop-prod get virtualservice cart -o jsonpath='{.spec.http[0].timeout}'`, "5s")
		},
		func() error {
			s.tell.Say("The mending commit goes through at once:")
			return s.run(ctx, "sed -i 's/timout: 3s/timeout: 3s/' base/cart/route.yaml && "+commit("cart: spell it")+" && "+push)
		},
		func() error { return s.run(ctx, "mooring sync shop-prod -n moorings", "Ready=True Applied") },
		func() error { return s.inForce(ctx, "shop-dev", "shop-staging", "shop-prod") },
		func() error {
			return s.run(ctx, `kubectl -n shop-prod get virtualservice cart -o jsonpath='{.spec.http[0].timeout}'`, "3s")
		},
	)
}

// emptied pushes a commit whose path stands for nothing.
func (s *Story) emptied(ctx context.Context) error {
	s.tell.Say("A bad merge leaves prod without resources. Taken at its word, that commit deletes all of prod.")
	const count = `kubectl -n shop-prod get virtualservices,destinationrules,authorizationpolicies,services -o name | wc -l`
	before := ""
	return steps(
		func() (err error) {
			before, err = s.shell(ctx, 0, count)
			return err
		},
		func() error {
			return s.run(ctx, "git rm -r --quiet overlays/prod && mkdir overlays/prod && echo 'resources: []' > overlays/prod/kustomization.yaml && git add overlays/prod")
		},
		func() error { return s.run(ctx, commit("Merge branch 'tidy'")+" && "+push) },
		func() error {
			return s.exits(ctx, 1, "mooring sync shop-prod -n moorings", "Ready=False PruneGuarded", "stays in force")
		},
		func() error {
			s.tell.Say("Nothing is gone:")
			return s.run(ctx, count, before)
		},
		func() error { return s.run(ctx, "kubectl -n moorings get moorings shop-prod", "PruneGuarded") },
		func() error {
			s.tell.Say("The way back is the way forward:")
			return s.run(ctx, "git revert --no-edit HEAD >/dev/null && "+push)
		},
		func() error { return s.run(ctx, "mooring sync shop-prod -n moorings", "Ready=True Applied") },
		func() error { return s.inForce(ctx, "shop-prod") },
		func() error {
			s.tell.Say("All that became of prod, in one view. (No nodes are here to run pods, so the Deployments never become healthy.)")
			return s.run(ctx, "mooring get shop-prod -n moorings", "True (Applied)", "History")
		},
	)
}
