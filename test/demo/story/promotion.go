package story

import (
	"context"
)

// timeoutInProd shows the field that these steps change.
const timeoutInProd = `kubectl -n shop-prod get virtualservice cart -o jsonpath='{.spec.http[0].timeout}'`

// ready is what a cluster with nodes would write by itself once the pods of an environment run.
func ready(namespace string) string {
	return `for d in $(kubectl -n ` + namespace + ` get deployments -o name); do
  g=$(kubectl -n ` + namespace + ` get $d -o jsonpath='{.metadata.generation}'); n=$(kubectl -n ` + namespace + ` get $d -o jsonpath='{.spec.replicas}')
  kubectl -n ` + namespace + ` patch $d --subresource=status --type=merge -p '{"status":{"observedGeneration":'$g',"replicas":'$n',"updatedReplicas":'$n',"readyReplicas":'$n',"availableReplicas":'$n',"conditions":[{"type":"Available","status":"True","reason":"MinimumReplicasAvailable"},{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable"}]}}' >/dev/null
done`
}

// promotion lets prod follow staging.
func (s *Story) promotion(ctx context.Context) error {
	s.tell.Say("From now on prod takes up only what staging has proven: in force for five seconds, with every object healthy and no drift.")
	return steps(
		func() error {
			return s.run(ctx, `kubectl -n moorings patch mooring shop-prod --type=merge -p '{"spec":{"promotion":{"from":{"name":"shop-staging"},"soak":"5s"}}}'`, "patched")
		},
		func() error {
			return s.run(ctx, "sed -i 's/timeout: 3s/timeout: 4s/' base/cart/route.yaml && "+commit("cart: four seconds")+" && "+push)
		},
		func() error { return s.run(ctx, "mooring sync shop-staging -n moorings", "Ready=True Applied") },
		func() error {
			s.tell.Say("It is in force in staging. Prod waits: no nodes are here to run pods, so staging is not healthy.")
			return s.becomes(ctx, "mooring get promotions -n moorings", "shop-staging", "shop-prod", "cart: four seconds", "in force")
		},
		func() error {
			return s.becomes(ctx, "kubectl -n moorings get mooring shop-prod -o jsonpath='{.status.promotion.candidates[0].waitsFor}'", "is in force there, but not healthy")
		},
		func() error { return s.run(ctx, timeoutInProd, "3s") },
		func() error {
			s.tell.Say("The demo writes what a cluster with nodes would write now: all Deployments of staging are ready.")
			_, err := s.shell(ctx, 0, ready("shop-staging"))
			return err
		},
		func() error { return s.inForce(ctx, "shop-prod") },
		func() error { return s.run(ctx, timeoutInProd, "4s") },
		func() error { return s.run(ctx, "mooring get promotions -n moorings", "cart: four seconds") },
	)
}

// rollback goes back by hand, and lets go of it.
func (s *Story) rollback(ctx context.Context) error {
	s.tell.Say("At three in the morning somebody wants the commit before back, whatever Git says.")
	return steps(
		func() error {
			return s.run(ctx, `mooring rollback shop-prod -n moorings --reason "incident 4711"`, "Ready=True Applied")
		},
		func() error { return s.run(ctx, timeoutInProd, "3s") },
		func() error {
			return s.run(ctx, "mooring history shop-prod -n moorings", "rollback", "incident 4711", "promotion")
		},
		func() error {
			s.tell.Say("It stays so, and drift is held to it, until somebody lets go:")
			return s.run(ctx, "mooring unpin shop-prod -n moorings", "Ready=True Applied")
		},
		func() error { return s.inForce(ctx, "shop-prod") },
		func() error { return s.run(ctx, timeoutInProd, "4s") },
	)
}
