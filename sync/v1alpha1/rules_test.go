package v1alpha1_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// source writes a spec with one repository.
func source(url, rest string) string {
	return `{source: {url: "` + url + `", ` + rest + `}}`
}

// with adds fields to the minimal spec.
func with(fields string) string {
	return strings.TrimSuffix(minimal, "}") + ", " + fields + "}"
}

// ref is a spec for one ref.
func ref(fields string) string {
	return source("https://git.example.com/mesh/config.git", "ref: {"+fields+"}")
}

const (
	branch = "ref: {branch: main}"
	secret = branch + ", secretRef: {name: git-auth}"
	id     = "4f0c12ab34cd56ef78901234567890abcdef1234"
)

// TestRefused has every rule of the schema with what breaks it, and what the user reads then.
func TestRefused(t *testing.T) {
	s := start(t)
	for name, c := range map[string]struct{ spec, want string }{
		"no source":            {`{path: a}`, "spec.source: Required value"},
		"no url":               {`{source: {` + branch + `}}`, "spec.source.url: Required value"},
		"no ref":               {source("https://git.example.com/a", ""), "spec.source.ref: Required value"},
		"empty ref":            {ref(""), "exactly one of branch, tag, semver, commit and name must be set"},
		"branch and tag":       {ref("branch: main, tag: v1"), "exactly one of branch, tag, semver, commit and name must be set"},
		"branch and semver":    {ref("branch: main, semver: '1.x'"), "exactly one of branch, tag, semver, commit and name must be set"},
		"all five":             {ref("branch: main, tag: v1, semver: '1', commit: " + id + ", name: refs/x"), "exactly one of branch"},
		"empty semver":         {ref("semver: ''"), "spec.source.ref.semver"},
		"long semver":          {ref("semver: '" + strings.Repeat("1||", 100) + "'"), "spec.source.ref.semver: Too long"},
		"semver of words":      {ref("semver: latest"), "semver is a range of versions, such as 1.x, ~1.2 or >=1.2.0 <2.0.0; for one tag use tag"},
		"semver with a quote":  {ref(`semver: "1.x'"`), "semver is a range of versions"},
		"semver with a line":   {ref(`semver: "1.x\n2.x"`), "semver is a range of versions"},
		"empty branch":         {ref("branch: ''"), "spec.source.ref.branch"},
		"long branch":          {ref("branch: " + strings.Repeat("a", 256)), "spec.source.ref.branch: Too long"},
		"branch is an option":  {ref("branch: --upload-pack=x"), "branch is the short name, such as main or env/prod"},
		"branch in full":       {ref("branch: refs/heads/main"), "branch is the short name, such as main or env/prod; for another ref use name"},
		"branch with a space":  {ref("branch: 'env prod'"), "branch is not a name that Git allows"},
		"branch with a range":  {ref("branch: main..dev"), "branch is not a name that Git allows"},
		"branch with a glob":   {ref("branch: env/*"), "branch is not a name that Git allows"},
		"branch as a revision": {ref("branch: main~1"), "branch is not a name that Git allows"},
		"branch ends in lock":  {ref("branch: main.lock"), "branch is not a name that Git allows"},
		"branch ends in slash": {ref("branch: env/"), "branch is not a name that Git allows"},
		"branch with a newline": {
			ref(`branch: "main\nx"`), "branch is not a name that Git allows",
		},
		"tag in full":      {ref("tag: refs/tags/v1"), "tag is the short name, such as v1.2.0; for another ref use name"},
		"tag is an option": {ref("tag: -x"), "tag is the short name"},
		"tag with a colon": {ref("tag: 'v1:x'"), "tag is not a name that Git allows"},
		"empty tag":        {ref("tag: ''"), "spec.source.ref.tag"},
		"short commit":     {ref("commit: 4f0c12a"), "spec.source.ref.commit"},
		"capital commit":   {ref("commit: " + strings.ToUpper(id)), "spec.source.ref.commit"},
		"numeric commit":   {ref("commit: 1234567"), "spec.source.ref.commit"},
		"short name":       {ref("name: main"), "spec.source.ref.name"},
		"name of nothing":  {ref("name: refs/"), "spec.source.ref.name"},
		"name with a glob": {ref("name: refs/heads/*"), "name is not a name that Git allows"},
		"unknown in ref":   {ref("branch: main, brunch: x"), `unknown field "spec.source.ref.brunch"`},

		"health of no kind":        {with("healthChecks: [{apiVersion: v1, current: 'true'}]"), "spec.healthChecks[0].kind"},
		"health without current":   {with("healthChecks: [{apiVersion: v1, kind: X}]"), "spec.healthChecks[0].current"},
		"health of a kind twice":   {with("healthChecks: [{apiVersion: v1, kind: X, current: 'true'}, {apiVersion: v1, kind: X, current: 'true'}]"), "spec.healthChecks[1]: Duplicate value"},
		"unknown in a healthCheck": {with("healthChecks: [{apiVersion: v1, kind: X, current: 'true', expr: x}]"), `unknown field "spec.healthChecks[0].expr"`},

		"empty url":              {source("", branch), "spec.source.url"},
		"long url":               {source("https://h/"+strings.Repeat("a", 2048), branch), "spec.source.url: Too long"},
		"file url":               {source("file:///srv/repo", branch), "url is https://host/path, ssh://user@host/path"},
		"ext url":                {source("ext::sh -c id", branch), "url is https://host/path"},
		"git url":                {source("git://host/repo", branch), "url is https://host/path"},
		"ftp url":                {source("ftp://host/repo", branch), "url is https://host/path"},
		"capital scheme":         {source("HTTP://host/repo", secret), "url is https://host/path"},
		"path as url":            {source("/srv/repo.git", branch), "url is https://host/path"},
		"relative path as url":   {source("../repo.git", branch), "url is https://host/path"},
		"option as url":          {source("--upload-pack=touch x", branch), "url is https://host/path"},
		"option as host":         {source("ssh://-oProxyCommand=x/repo", secret), "url is https://host/path"},
		"option as user":         {source("-oProxyCommand=x@host:repo", secret), "url is https://host/path"},
		"option as scp host":     {source("git@-oProxyCommand:repo", secret), "url is https://host/path"},
		"space in url":           {source("https://host/a repo", branch), "url is https://host/path"},
		"newline in url":         {source(`https://host/a\nb`, branch), "url is https://host/path"},
		"url without path":       {source("https://host", branch), "url is https://host/path"},
		"url with a slash only":  {source("https://host/", branch), "url is https://host/path"},
		"url without host":       {source("https:///repo", branch), "url is https://host/path"},
		"password in url":        {source("https://user:word@host/repo", branch), "url holds credentials: move them to the Secret of secretRef"},
		"token in url":           {source("https://token@host/repo", branch), "url holds credentials"},
		"password in http url":   {source("http://user:word@host/repo", branch), "url holds credentials"},
		"password in ssh url":    {source("ssh://git:word@host/repo", secret), "url holds credentials"},
		"secret over http":       {source("http://host/repo", secret), "credentials are never sent over http"},
		"ssh without secret":     {source("ssh://git@host/repo", branch), "needs secretRef: a Secret with the keys identity and known_hosts"},
		"scp without secret":     {source("git@host:repo", branch), "needs secretRef: a Secret with the keys identity and known_hosts"},
		"secret without name":    {source("https://host/repo", branch+", secretRef: {}"), "spec.source.secretRef.name: Required value"},
		"secret with empty name": {source("https://host/repo", branch+", secretRef: {name: ''}"), "spec.source.secretRef.name"},
		"proxy without name":     {source("https://host/repo", branch+", proxySecretRef: {}"), "spec.source.proxySecretRef.name: Required value"},
		"proxy as an address":    {source("https://host/repo", branch+", proxySecretRef: {address: 'http://p:3128'}"), `unknown field "spec.source.proxySecretRef.address"`},
		"secret in a namespace":  {source("https://host/repo", branch+", secretRef: {name: a, namespace: b}"), `unknown field "spec.source.secretRef.namespace"`},
		"verify without keys":    {source("https://host/repo", branch+", verify: {mode: Head}"), "spec.source.verify.secretRef: Required value"},
		"verify unnamed keys":    {source("https://host/repo", branch+", verify: {secretRef: {}}"), "spec.source.verify.secretRef.name: Required value"},
		"verify mode of Flux":    {source("https://host/repo", branch+", verify: {mode: HEAD, secretRef: {name: k}}"), "spec.source.verify.mode: Unsupported value"},
		"verify tag of a branch": {source("https://host/repo", branch+", verify: {mode: Tag, secretRef: {name: k}}"), "verify.mode Tag and TagAndHead need a tag: set ref.tag or ref.semver, or use mode Head"},
		"verify both of commit":  {source("https://host/repo", "ref: {commit: "+strings.Repeat("a", 40)+"}, verify: {mode: TagAndHead, secretRef: {name: k}}"), "verify.mode Tag and TagAndHead need a tag"},
		"verify typo":            {source("https://host/repo", branch+", verify: {secretRef: {name: k}, descendants: true}"), `unknown field "spec.source.verify.descendants"`},

		"empty path":       {with("path: ''"), "spec.path"},
		"long path":        {with("path: " + strings.Repeat("a", 1025)), "spec.path: Too long"},
		"absolute path":    {with("path: /overlays/prod"), "path is relative to the root of the repository: write overlays/prod, not /overlays/prod"},
		"path up":          {with("path: .."), "path cannot lead out of the repository: it must not contain .."},
		"path up and down": {with("path: ../config"), "path cannot lead out of the repository"},
		"path up inside":   {with("path: a/../../b"), "path cannot lead out of the repository"},
		"path as a list":   {with("path: [a]"), "spec.path"},

		"no interval":             {with("interval: 0s"), "interval is a duration of at least 1s, such as 30s, 5m or 1h30m"},
		"short interval":          {with("interval: 500ms"), "interval is a duration of at least 1s"},
		"negative interval":       {with("interval: -5m"), "interval is a duration of at least 1s"},
		"interval without unit":   {with("interval: '300'"), "interval is a duration of at least 1s"},
		"interval as a number":    {with("interval: 300"), "spec.interval"},
		"interval in days":        {with("interval: 1d"), "interval is a duration of at least 1s"},
		"interval in words":       {with("interval: 5 minutes"), "interval is a duration of at least 1s"},
		"empty interval":          {with("interval: ''"), "interval is a duration of at least 1s"},
		"interval of a millenium": {with("interval: 99999999h"), "interval"},
		"no timeout":              {with("timeout: 0s"), "timeout is a duration of at least 1s, such as 30s or 5m"},
		"negative timeout":        {with("timeout: -1m"), "timeout is a duration of at least 1s"},
		"timeout without unit":    {with("timeout: '60'"), "timeout is a duration of at least 1s"},

		"percent of nothing":    {with("prune: {maxPercent: 0}"), "spec.prune.maxPercent"},
		"negative percent":      {with("prune: {maxPercent: -1}"), "spec.prune.maxPercent"},
		"more than all":         {with("prune: {maxPercent: 101}"), "spec.prune.maxPercent"},
		"percent with sign":     {with("prune: {maxPercent: '25%'}"), "spec.prune.maxPercent"},
		"no objects":            {with("prune: {maxObjects: 0}"), "spec.prune.maxObjects"},
		"negative objects":      {with("prune: {maxObjects: -1}"), "spec.prune.maxObjects"},
		"prune as a flag":       {with("prune: true"), "spec.prune"},
		"prune as a word":       {with("prune: {enabled: 'no'}"), "spec.prune.enabled"},
		"unknown in prune":      {with("prune: {enable: false}"), `unknown field "spec.prune.enable"`},
		"other way to ask":      {with("propagation: {ask: Always}"), `supported values: "PortForward", "Service", "Never"`},
		"no pause":              {with("propagation: {pause: 0s}"), "pause is a duration, such as 5s or 500ms"},
		"pause without unit":    {with("propagation: {pause: '5'}"), "pause is a duration, such as 5s or 500ms"},
		"short propagation":     {with("propagation: {timeout: 500ms}"), "timeout is a duration of at least 1s, such as 30s or 1m"},
		"unknown way":           {with("propagation: {asks: Never}"), `unknown field "spec.propagation.asks"`},
		"other deletion":        {with("deletionPolicy: Delete"), `supported values: "Prune", "Orphan"`},
		"suspend as a word":     {with("suspend: 'yes'"), "spec.suspend"},
		"wait as a duration":    {with("wait: 5m"), "spec.wait"},
		"unknown in spec":       {with("intervall: 5m"), `unknown field "spec.intervall"`},
		"flux's field":          {with("sourceRef: {kind: GitRepository, name: a}"), `unknown field "spec.sourceRef"`},
		"empty schedule":        {with("schedule: ''"), "spec.schedule"},
		"schedule of a word":    {with("schedule: nightly"), "an expression has five fields: minute, hour, day of month, month, day of week, such as 30 2 * * MON-FRI"},
		"schedule of seconds":   {with("schedule: '0 0 2 * * *'"), "an expression has five fields"},
		"schedule with a zone":  {with("schedule: 'TZ=Europe/Rome'"), "the time zone does not go into the expression: write it in timeZone"},
		"cron's own zone":       {with("schedule: 'CRON_TZ=Europe/Rome 0 2 * * *'"), "the time zone does not go into the expression"},
		"schedule at start":     {with("schedule: '@reboot'"), "the words are @yearly, @monthly, @weekly, @daily, @hourly and @every 30m"},
		"long schedule":         {with("schedule: '" + strings.Repeat("1,", 80) + "1 * * * *'"), "spec.schedule: Too long"},
		"zone of the machine":   {with("timeZone: Local"), "timeZone is a name of the IANA database, such as Europe/Berlin or UTC"},
		"zone out of the way":   {with("timeZone: ../../etc/passwd"), "timeZone is a name of the IANA database"},
		"window of no kind":     {with("windows: [{schedule: '0 17 * * FRI', duration: 63h}]"), "spec.windows[0].kind: Required value"},
		"window of other kind":  {with("windows: [{kind: deny, schedule: '0 17 * * FRI', duration: 63h}]"), `supported values: "Allow", "Deny"`},
		"window of no time":     {with("windows: [{kind: Deny, duration: 63h}]"), "spec.windows[0].schedule: Required value"},
		"window without end":    {with("windows: [{kind: Deny, schedule: '0 17 * * FRI'}]"), "spec.windows[0].duration: Required value"},
		"window of nothing":     {with("windows: [{kind: Deny, schedule: '0 17 * * FRI', duration: 0s}]"), "duration is a duration from 1s to 744h, such as 90m or 63h"},
		"window backwards":      {with("windows: [{kind: Deny, schedule: '0 17 * * FRI', duration: -1h}]"), "duration is a duration from 1s to 744h"},
		"window of a year":      {with("windows: [{kind: Deny, schedule: '0 17 * * FRI', duration: 8760h}]"), "to hold new commits for longer, use suspend"},
		"window in no zone":     {with("windows: [{kind: Deny, schedule: '0 17 * * FRI', duration: 63h, timeZone: 'UTC+2:00'}]"), "timeZone is a name of the IANA database"},
		"window with a zone":    {with("windows: [{kind: Deny, schedule: 'TZ=UTC 0 17 * * FRI', duration: 63h}]"), "the time zone does not go into the expression"},
		"too many windows":      {with("windows: [" + strings.Repeat("{kind: Deny, schedule: '@daily', duration: 1h},", 21) + "]"), "spec.windows: Too many"},
		"drift mode":            {with("drift: {mode: Ignore}"), `supported values: "Correct", "Alarm"`},
		"empty drift mode":      {with("drift: {mode: ''}"), `supported values: "Correct", "Alarm"`},
		"ignore nothing":        {with("drift: {ignore: [{target: {kind: Deployment}}]}"), "spec.drift.ignore[0].paths: Required value"},
		"ignore no paths":       {with("drift: {ignore: [{paths: []}]}"), "spec.drift.ignore[0].paths"},
		"ignore a name":         {with("drift: {ignore: [{paths: [spec.replicas]}]}"), "spec.drift.ignore[0].paths[0]"},
		"ignore all":            {with("drift: {ignore: [{paths: [/]}]}"), "spec.drift.ignore[0].paths[0]"},
		"ignore a bad pointer":  {with("drift: {ignore: [{paths: ['/metadata/annotations/a~b']}]}"), "spec.drift.ignore[0].paths[0]"},
		"unknown in ignore":     {with("drift: {ignore: [{target: {version: v1}, paths: [/spec/replicas]}]}"), `unknown field "spec.drift.ignore[0].target.version"`},
		"other level":           {with("check: {failOn: error}"), `supported values: "Error", "Warning", "Info"`},
		"code in small":         {with("check: {ignore: [ist0102]}"), "a code is written as in the finding, such as MOOR012 or IST0102"},
		"code of no number":     {with("check: {ignore: [MOOR]}"), "a code is written as in the finding"},
		"all codes ignored":     {with("check: {ignore: ['*']}"), "a code is written as in the finding"},
		"code twice":            {with("check: {ignore: [IST0102, IST0102]}"), "Duplicate value"},
		"suppress no code":      {with("check: {suppress: [{resource: Service/apps/web}]}"), "spec.check.suppress[0].code: Required value"},
		"suppress a word":       {with("check: {suppress: [{code: all, resource: Service/apps/web}]}"), "such as MOOR012 or IST0102, or is * for all"},
		"suppress nowhere":      {with("check: {suppress: [{code: IST0118}]}"), "spec.check.suppress[0].resource: Required value"},
		"suppress a name":       {with("check: {suppress: [{code: IST0118, resource: web}]}"), "resource is Kind/namespace/name, such as Service/apps/*"},
		"suppress a group":      {with("check: {suppress: [{code: IST0118, resource: v1/Service/apps/web}]}"), "resource is Kind/namespace/name"},
		"suppress a range":      {with("check: {suppress: [{code: IST0118, resource: 'Service/apps/[a-z]'}]}"), "resource is Kind/namespace/name"},
		"policy from nowhere":   {with("check: {policies: [{}]}"), "exactly one of path and configMapRef must be set"},
		"policy from two":       {with("check: {policies: [{path: a, configMapRef: {name: b}}]}"), "exactly one of path and configMapRef must be set"},
		"absolute policy":       {with("check: {policies: [{path: /policies}]}"), "path is relative to the root of the repository: write policies/mesh.yaml, not /policies/mesh.yaml"},
		"policy up":             {with("check: {policies: [{path: a/../../b}]}"), "path cannot lead out of the repository: it must not contain .."},
		"empty policy path":     {with("check: {policies: [{path: ''}]}"), "spec.check.policies[0].path"},
		"ConfigMap of no name":  {with("check: {policies: [{configMapRef: {key: a}}]}"), "spec.check.policies[0].configMapRef.name: Required value"},
		"ConfigMap elsewhere":   {with("check: {policies: [{configMapRef: {name: a, namespace: b}}]}"), `unknown field "spec.check.policies[0].configMapRef.namespace"`},
		"unknown in check":      {with("check: {failon: Error}"), `unknown field "spec.check.failon"`},
		"promotion from nobody": {with("promotion: {soak: 30m}"), "spec.promotion.from: Required value"},
		"promotion of a tag":    {"{source: {url: 'https://git.example.com/c.git', ref: {tag: v1}}, promotion: {from: {name: staging}}}", "promotion goes along branches: source.ref must name a branch"},
		"other mode":            {with("promotion: {from: {name: staging}, mode: follow}"), `supported values: "Follow", "FastForward", "PullRequest"`},
		"push without a Secret": {with("promotion: {from: {name: staging}, mode: FastForward}"), "name the Secret that may, in promotion.secretRef"},
		"Follow with a Secret":  {with("promotion: {from: {name: staging}, secretRef: {name: a}}"), "mode Follow writes nothing to Git"},
		"Follow with a forge":   {with("promotion: {from: {name: staging}, pullRequest: {provider: GitHub}}"), "promotion.pullRequest is for mode PullRequest alone"},
		"soak without a unit":   {with("promotion: {from: {name: staging}, soak: '30'}"), "soak is a duration such as 30m or 24h"},
		"metric of no bound":    {with("promotion: {from: {name: staging}, metrics: [{name: a, address: 'http://p:9090', query: up}]}"), "a metric needs a bound: min, max or both"},
		"metric's bound":        {with("promotion: {from: {name: staging}, metrics: [{name: a, address: 'http://p:9090', query: up, min: 99%}]}"), "spec.promotion.metrics[0].min"},
		"metric's password":     {with("promotion: {from: {name: staging}, metrics: [{name: a, address: 'http://u:p@p:9090', query: up, min: '1'}]}"), "credentials belong into secretRef"},
		"metric's Secret":       {with("promotion: {from: {name: staging}, metrics: [{name: a, address: 'http://p:9090', query: up, min: '1', secretRef: {name: s}}]}"), "credentials are never sent over http"},
		"forge over http":       {with("promotion: {from: {name: staging}, mode: PullRequest, secretRef: {name: a}, pullRequest: {url: 'http://git.example.com'}}"), "url is https://host or https://host/path"},
		"pin to a branch":       {with("pin: {revision: main}"), "spec.pin.revision"},
		"pin to nothing":        {with("pin: {reason: incident}"), "spec.pin.revision: Required value"},
		"rollback unseen":       {with("onFailure: Rollback"), "onFailure: Rollback needs wait: true"},
		"other onFailure":       {with("onFailure: rollback, wait: true"), `supported values: "Keep", "Rollback"`},
		"dependency of no name": {with("dependsOn: [{namespace: istio}]"), "spec.dependsOn[0].name: Required value"},
		"serviceAccountName":    {with("serviceAccountName: mesh-deployer"), "serviceAccountName is not supported by this version of Mooring; every call is made with the agent's own rights"},
		"kubeConfig":            {with("kubeConfig: {secretRef: {name: cluster-b}}"), "kubeConfig is not supported by this version of Mooring"},
		"mesh":                  {with("mesh: {revision: 1-31}"), "mesh is not supported by this version of Mooring"},
		"two faults at a time":  {with("mesh: {}, path: /a"), "path is relative"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.try(t, parse(t, c.spec), metav1.FieldValidationStrict)
			if err == nil {
				t.Fatalf("accepted %s", c.spec)
			}
			if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
				t.Errorf("refused for another reason than its content: %v", err)
			}
			// An error in a rule refuses as well, with a text that helps nobody.
			if strings.Contains(err.Error(), "rule:") || strings.Contains(err.Error(), "no such") {
				t.Errorf("a rule has a fault: %v", err)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("the message lacks %q: %v", c.want, err)
			}
		})
	}
}

func TestRefusesWithoutSpec(t *testing.T) {
	s := start(t)
	_, err := s.try(t, nil, metav1.FieldValidationStrict)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec: Required value") {
		t.Errorf("got %v", err)
	}
}

// TestAccepted has the good forms. What was written must still be there: a field that the schema does not know would be gone.
func TestAccepted(t *testing.T) {
	s := start(t)
	for name, spec := range map[string]string{
		"minimal":               minimal,
		"https with a port":     source("https://git.example.com:8443/mesh/config.git", branch),
		"https with a secret":   source("https://git.example.com/mesh/config", secret),
		"http without secret":   source("http://127.0.0.1:3000/config.git", branch),
		"http through a proxy":  source("http://127.0.0.1:3000/config.git", branch+", proxySecretRef: {name: proxy}"),
		"ssh through a proxy":   source("git@git.example.com:mesh/config.git", secret+", proxySecretRef: {name: proxy}"),
		"ssh":                   source("ssh://git@git.example.com/mesh/config.git", secret),
		"ssh with a port":       source("ssh://git@git.example.com:2222/mesh/config.git", secret),
		"ssh to an IPv6 host":   source("ssh://git@[::1]:2222/mesh/config.git", secret),
		"ssh without user":      source("ssh://git.example.com/config.git", secret),
		"verify":                source("https://host/repo", branch+", verify: {secretRef: {name: k}, descendantsOnly: true}"),
		"verify a commit":       source("https://host/repo", "ref: {commit: "+strings.Repeat("a", 40)+"}, verify: {mode: Head, secretRef: {name: k}}"),
		"verify a tag":          source("https://host/repo", "ref: {tag: v1}, verify: {mode: Tag, secretRef: {name: k}}"),
		"verify a tag and more": source("https://host/repo", "ref: {tag: v1}, verify: {mode: TagAndHead, secretRef: {name: k}}"),
		"scp form":              source("git@git.example.com:mesh/config.git", secret),
		"scp form from the top": source("git@git.example.com:/srv/mesh/config.git", secret),
		"user with a dash":      source("git-reader@git.example.com:config", secret),
		"escaped space":         source("https://git.example.com/a%20b.git", branch),
		"branch":                ref("branch: env/prod"),
		"branch with dots":      ref("branch: release-1.31"),
		"branch like an issue":  ref("branch: 'feature/#12_a+b@c'"),
		"tag":                   ref("tag: v1.2.0"),
		"semver":                ref("semver: '>=1.2.0-0, <2.0.0 || ~3.1 || v4.x'"),
		"semver of any":         ref("semver: '*'"),
		"semver as a number":    ref("semver: '1'"),
		"commit":                ref("commit: " + id),
		"name":                  ref("name: refs/pull/7/head"),
		"promotion":             with("promotion: {from: {name: staging}, soak: 30m}"),
		"promotion by push":     with("promotion: {from: {name: staging}, mode: FastForward, secretRef: {name: git-write}}"),
		"promotion by request":  with("promotion: {from: {name: staging}, mode: PullRequest, secretRef: {name: git-write}, approval: Manual}"),
		"metric":                with("promotion: {from: {name: staging}, metrics: [{name: a, address: 'http://p:9090/prom', query: 'up[$soak]', max: '-0.5'}]}"),
		"pin":                   with("pin: {revision: 'env/prod@sha1:" + id + "'}"),
		"pin to a bare commit":  with("pin: {revision: 'sha1:" + id + "', reason: 'incident 4711'}"),
		"rollback":              with("onFailure: Rollback, wait: true"),
		"path":                  with("path: overlays/prod"),
		"path from here":        with("path: ./overlays/prod"),
		"path with a slash":     with("path: overlays/prod/"),
		"path with dots":        with("path: overlays/..prod/a..b"),
		"path is the root":      with("path: ."),
		"long path":             with("path: " + strings.Repeat("a/", 500)),
		"interval":              with("interval: 30s"),
		"shortest interval":     with("interval: 1s"),
		"composed interval":     with("interval: 1h30m"),
		"fraction of an hour":   with("interval: 1.5h"),
		"interval in ms":        with("interval: 1500ms"),
		"timeout":               with("timeout: 10m"),
		"prune":                 with("prune: {enabled: false, maxPercent: 100, maxObjects: 1}"),
		"prune least":           with("prune: {enabled: true, maxPercent: 1, maxObjects: 2147483647}"),
		"wait":                  with("wait: true"),
		"propagation":           with("propagation: {ask: Service, pause: 500ms, timeout: 2m}"),
		"no questions":          with("propagation: {ask: Never}"),
		"orphan":                with("deletionPolicy: Orphan"),
		"prune on deletion":     with("deletionPolicy: Prune"),
		"suspend":               with("suspend: true"),
		"schedule":              with("schedule: '*/10 8-18 * * MON-FRI', timeZone: Europe/Berlin"),
		"schedule of a word":    with("schedule: '@daily', timeZone: America/Argentina/Buenos_Aires"),
		"schedule of distances": with("schedule: '@every 1h30m', timeZone: Etc/GMT-2"),
		"windows":               with("windows: [{kind: Deny, schedule: '0 17 * * FRI', duration: 63h, timeZone: Europe/Berlin}, {kind: Allow, schedule: '0 8 1-7,15 JAN-JUN,12 ?', duration: 744h}]"),
		"no windows":            with("windows: []"),
		"check":                 with("check: {failOn: Warning, ignore: [IST0102, HOUSE-7], suppress: [{code: IST0118, resource: Service/apps/*}, {code: '*', resource: Namespace/istio-system}]}"),
		"check of all":          with("check: {failOn: Info}"),
		"policies":              with("check: {policies: [{path: policies}, {path: policies/..mesh.yaml}, {configMapRef: {name: house}}, {configMapRef: {name: house, key: mesh.yaml}}]}"),
	} {
		t.Run(name, func(t *testing.T) {
			sent := parse(t, spec)
			got, err := s.try(t, sent, metav1.FieldValidationStrict)
			if err != nil {
				t.Fatal(err)
			}
			stored := got.Object["spec"].(map[string]any)
			if missing := lost("spec", sent, stored); len(missing) > 0 {
				t.Errorf("lost %s", strings.Join(missing, ", "))
			}
		})
	}
}

// lost lists the fields that were sent and did not come back as they were.
func lost(path string, sent, got any) []string {
	m, ok := sent.(map[string]any)
	if !ok {
		if diff := cmp.Diff(numbers(sent), numbers(got)); diff != "" {
			return []string{path}
		}
		return nil
	}
	g, _ := got.(map[string]any)
	var all []string
	for k, v := range m {
		all = append(all, lost(path+"."+k, v, g[k])...)
	}
	return all
}

// numbers makes one type of the two that YAML and the API server have for them.
func numbers(v any) any {
	if i, ok := v.(int64); ok {
		return float64(i)
	}
	return v
}

// TestUpdateIsHeldToTheRules makes sure that what may not be created can not be edited in either, and that a status
// does not come in by the way.
func TestUpdateIsHeldToTheRules(t *testing.T) {
	s := start(t)
	made := mooring(s.namespace, parse(t, minimal))
	made.Object["status"] = map[string]any{"lastAppliedRevision": "main@sha1:forged"}
	made, err := s.Create(t.Context(), made, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, has, _ := unstructured.NestedMap(made.Object, "status"); has {
		t.Errorf("a status was taken from who may write the spec alone: %v", made.Object["status"])
	}
	made.Object["spec"].(map[string]any)["path"] = "../other"
	_, err = s.Update(t.Context(), made, metav1.UpdateOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "path cannot lead out of the repository") {
		t.Errorf("update: %v", err)
	}
}

// TestStatusLists holds the bounds of the status, which keep an object small whatever the repository holds.
func TestStatusLists(t *testing.T) {
	s := start(t)
	made, err := s.Create(t.Context(), mooring(s.namespace, parse(t, minimal)), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	entries := map[string]struct {
		most  int
		entry map[string]any
	}{
		"history":     {10, map[string]any{"revision": "main@sha1:" + id, "appliedAt": "2026-01-02T03:04:05Z", "digest": "sha256:00"}},
		"drift":       {20, map[string]any{"object": "VirtualService/shop/web"}},
		"corrections": {20, map[string]any{"object": "VirtualService/shop/web", "correctedAt": "2026-01-02T03:04:05Z"}},
		"fights":      {20, map[string]any{"object": "VirtualService/shop/web", "corrections": int64(4), "since": "2026-01-02T03:04:05Z", "next": "2026-01-02T03:04:05Z"}},
		"findings":    {20, map[string]any{"code": "IST0101", "level": "Error", "message": "m"}},
		"notChecked":  {20, map[string]any{"code": "IST0101", "about": "hosts", "why": "forbidden"}},
	}
	for field, c := range entries {
		for n, good := range map[int]bool{c.most: true, c.most + 1: false} {
			list := make([]any, n)
			for i := range list {
				list[i] = maps.Clone(c.entry)
			}
			u := made.DeepCopy()
			u.Object["status"] = map[string]any{field: list}
			_, err := s.UpdateStatus(t.Context(), u, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
			if good && err != nil || !good && !apierrors.IsInvalid(err) {
				t.Errorf("%d entries in status.%s: %v", n, field, err)
			}
		}
	}
}
