package repos

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// Remote is a repository and how to get there and in.
type Remote struct {
	URL  string
	Auth Auth
	// Proxy on the way; the zero value leaves it to the environment of the process.
	Proxy Proxy
	// RecurseSubmodules shows the files of submodules in their places in a Snapshot's FS: those that are on the same server, which see the same
	// credentials.
	RecurseSubmodules bool
}

// Auth is how to get in. The zero value is anonymous. However it is printed, it shows no secret.
type Auth struct {
	sealed *sealed
}

// sealed hides secrets behind a function, which package fmt cannot look into: not even for an Auth in an unexported
// field, whose String it may not call.
type sealed struct {
	open func() *secrets
}

// secrets are nil for the zero Auth.
func (a Auth) secrets() *secrets {
	if a.sealed == nil {
		return nil
	}
	return a.sealed.open()
}

type secrets struct {
	username, password, bearer string
	signer                     ssh.Signer
	hosts                      *knownHosts
	roots                      *x509.CertPool
	clientCert                 *tls.Certificate
	app                        *githubApp
	digest                     [sha256.Size]byte
}

// The keys of a Secret that AuthFromSecret reads; they are those of Flux.
const (
	keyUsername   = "username"
	keyPassword   = "password"
	keyBearer     = "bearerToken"
	keyIdentity   = "identity"
	keyPublic     = "identity.pub"
	keyKnownHosts = "known_hosts"
	keyCA         = "ca.crt"
	keyCert       = "tls.crt"
	keyCertKey    = "tls.key"
	// The names that Flux used before, and still takes.
	keyOldCA      = "caFile"
	keyOldCert    = "certFile"
	keyOldCertKey = "keyFile"
)

// AuthFromSecret reads the data of a Kubernetes Secret: username and password, bearerToken, identity (with password, if
// the key is encrypted) and known_hosts, ca.crt, tls.crt and tls.key, and those of a GitHub App: githubAppID,
// githubAppInstallationID or githubAppInstallationOwner, githubAppPrivateKey, githubAppBaseURL. Whether they go with a
// URL is seen when it is asked for. The error names the key that is missing or wrong and never its value.
func AuthFromSecret(data map[string][]byte) (Auth, error) {
	s := &secrets{
		username: line(data[keyUsername]),
		password: line(data[keyPassword]),
		bearer:   line(data[keyBearer]),
		digest:   digest(data),
	}
	for _, step := range []func(map[string][]byte) error{s.checkKeys, s.readIdentity, s.readTLS, s.readApp, s.checkPasswords} {
		if err := step(data); err != nil {
			return Auth{}, err
		}
	}
	return Auth{&sealed{open: func() *secrets { return s }}}, nil
}

// line is a value without the line end that editors and --from-file leave behind.
func line(value []byte) string {
	return strings.TrimRight(string(value), "\r\n")
}

// digest covers every key and value, each with its length before it, so that no two Secrets look alike.
func digest(data map[string][]byte) (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(data)) {
		for _, part := range [][]byte{[]byte(key), data[key]} {
			var size [8]byte
			binary.BigEndian.PutUint64(size[:], uint64(len(part)))
			h.Write(size[:])
			h.Write(part)
		}
	}
	h.Sum(sum[:0])
	return sum
}

func (s *secrets) checkKeys(data map[string][]byte) error {
	for _, key := range []string{
		keyUsername, keyPassword, keyBearer, keyIdentity, keyKnownHosts, keyCA, keyCert, keyCertKey,
		keyOldCA, keyOldCert, keyOldCertKey, keyAppID, keyAppInstallation, keyAppOwner, keyAppKey, keyAppBase,
	} {
		if len(data[key]) > 0 {
			return nil
		}
	}
	found := "it is empty"
	if len(data) > 0 {
		found = "it has " + clean(strings.Join(slices.Sorted(maps.Keys(data)), ", "))
	}
	return failf(KindCredentials, "for https give username and password, or bearerToken; for ssh give identity and known_hosts",
		"the secret has none of the keys that are read; %s", found)
}

func (s *secrets) readIdentity(data map[string][]byte) error {
	identity, hosts := data[keyIdentity], data[keyKnownHosts]
	switch {
	case len(identity) == 0 && len(hosts) == 0:
		return nil
	case len(hosts) == 0:
		return failf(KindCredentials, "add it, as printed by ssh-keyscan HOST and compared with what the host publishes", "key %s is missing; without it the server's identity cannot be checked", keyKnownHosts)
	case len(identity) == 0:
		if s.username != "" || s.bearer != "" {
			return nil
		}
		return failf(KindCredentials, "add the private key of a deploy key", "key %s is missing", keyIdentity)
	}
	var err error
	if s.hosts, err = parseKnownHosts(hosts); err != nil {
		return failf(KindCredentials, "write one host and key per line, as ssh-keyscan prints them", "key %s: %w", keyKnownHosts, err)
	}
	s.signer, err = ssh.ParsePrivateKey(identity)
	if _, encrypted := errors.AsType[*ssh.PassphraseMissingError](err); encrypted {
		if s.password == "" {
			return failf(KindCredentials, "add the passphrase of the private key", "key %s is missing; %s is encrypted", keyPassword, keyIdentity)
		}
		s.signer, err = ssh.ParsePrivateKeyWithPassphrase(identity, []byte(s.password))
		if errors.Is(err, x509.IncorrectPasswordError) {
			return failf(KindCredentials, "give the passphrase of the private key", "key %s does not open %s", keyPassword, keyIdentity)
		}
	}
	if err != nil {
		return failf(KindCredentials, "give a private key as ssh-keygen writes it", "key %s is not a private key that can be read", keyIdentity)
	}
	return nil
}

// either gives the value of a key, or that of the one it was called before, and the name of which it was.
func either(data map[string][]byte, key, old string) (string, []byte) {
	if len(data[key]) == 0 && len(data[old]) > 0 {
		return old, data[old]
	}
	return key, data[key]
}

func (s *secrets) readTLS(data map[string][]byte) error {
	if key, ca := either(data, keyCA, keyOldCA); len(ca) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool() // a machine without authorities of its own
		}
		if !pool.AppendCertsFromPEM(ca) {
			return failf(KindCredentials, "give the authority's certificate as PEM", "key %s holds no certificate", key)
		}
		s.roots = pool
	}
	certName, cert := either(data, keyCert, keyOldCert)
	keyName, key := either(data, keyCertKey, keyOldCertKey)
	switch {
	case len(cert) == 0 && len(key) == 0:
		return nil
	case len(cert) == 0:
		return failf(KindCredentials, "add the client certificate", "key %s is missing", certName)
	case len(key) == 0:
		return failf(KindCredentials, "add the key of the client certificate", "key %s is missing", keyName)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return failf(KindCredentials, "give a certificate and its own key as PEM", "keys %s and %s are not a pair that can be read", certName, keyName)
	}
	s.clientCert = &pair
	return nil
}

func (s *secrets) checkPasswords(map[string][]byte) error {
	switch {
	case s.bearer != "" && s.username != "":
		return failf(KindCredentials, "keep one of the two", "keys %s and %s exclude each other", keyBearer, keyUsername)
	case s.username != "" && s.password == "":
		return failf(KindCredentials, "add the password or token", "key %s is missing", keyPassword)
	case s.password != "" && s.username == "" && s.signer == nil:
		return failf(KindCredentials, "add the user's name; for most forges' tokens any name will do", "key %s is missing", keyUsername)
	case strings.ContainsAny(s.username+s.password+s.bearer, "\r\n\x00"), strings.Contains(s.username, ":"):
		return failf(KindCredentials, "write each on one line, the name without a colon", "keys %s, %s or %s hold what HTTP cannot carry", keyUsername, keyPassword, keyBearer)
	}
	return nil
}

// fits tells whether the credentials can be used with a URL, and refuses to send a secret in the clear.
func (a Auth) fits(e endpoint) error {
	s := a.secrets()
	switch {
	case e.scheme == "ssh" && s != nil && s.signer == nil && s.app != nil:
		return failf(KindCredentials, "use the repository's https:// url, or add the keys identity and known_hosts", "the secret holds a GitHub App, whose tokens go with https alone")
	case e.scheme == "ssh" && (s == nil || s.signer == nil):
		return failf(KindCredentials, "name a Secret with the keys identity and known_hosts", "ssh needs a private key and known hosts")
	case s == nil || e.scheme == "ssh" || e.scheme == "file":
		return nil
	case e.scheme == "http" && (a.sendsSecret() || s.clientCert != nil || s.signer != nil):
		return failf(KindCredentials, "use https://, or leave out the Secret if the repository is public", "a secret is not sent over http, which does not encrypt")
	case s.signer != nil && !a.sendsSecret() && s.clientCert == nil:
		return failf(KindCredentials, "use an ssh:// url, or give username and password", "the secret holds an ssh key, and the url is %s", e.scheme)
	case s.app != nil:
		return s.app.fits(e.host)
	}
	return nil
}

// sendsSecret tells whether HTTP requests carry a password or token.
func (a Auth) sendsSecret() bool {
	s := a.secrets()
	return s != nil && (s.username != "" || s.bearer != "" || s.app != nil)
}

func (a Auth) apply(r *http.Request) {
	switch s := a.secrets(); {
	case s == nil:
	case s.bearer != "":
		r.Header.Set("Authorization", "Bearer "+s.bearer)
	case s.username != "":
		r.SetBasicAuth(s.username, s.password)
	}
}

// scrub takes our own secrets out of a text that came from a server, which may repeat what it was given.
func (a Auth) scrub(text string) string {
	s := a.secrets()
	if s == nil {
		return clean(text)
	}
	hidden := []string{s.password, s.bearer}
	if s.app != nil {
		hidden = append(hidden, s.app.tokens()...)
	}
	for _, secret := range hidden {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	return clean(text)
}

// String tells the sort of credentials and nothing of their content.
func (a Auth) String() string {
	s := a.secrets()
	if s == nil {
		return "anonymous"
	}
	var parts []string
	for _, p := range []struct {
		has  bool
		name string
	}{
		{s.username != "", "basic"},
		{s.bearer != "", "bearer"},
		{s.app != nil, "GitHub App"},
		{s.signer != nil, "ssh key"},
		{s.clientCert != nil, "client certificate"},
		{s.roots != nil, "own authority"},
	} {
		if p.has {
			parts = append(parts, p.name)
		}
	}
	return strings.Join(parts, ", ")
}

// GoString is String, so that %#v shows no secret either.
func (a Auth) GoString() string { return "repos.Auth{" + a.String() + "}" }

// LogValue is String, for log/slog.
func (a Auth) LogValue() slog.Value { return slog.StringValue(a.String()) }

// storeKey names the store of a remote. The credentials enter it, so that whoever has other ones, or none, does not get at
// what was fetched with these.
// A GitHub App's key is part of them and its tokens are not, so a new token finds what the old one fetched.
func storeKey(e endpoint, a Auth, p Proxy) string {
	h := sha256.New()
	for _, part := range []string{e.scheme, e.user, e.host, e.port, e.path} {
		h.Write([]byte(part + "\x00"))
	}
	if s := a.secrets(); s != nil {
		h.Write(s.digest[:])
	}
	h.Write([]byte(p.key()))
	return hex.EncodeToString(h.Sum(nil)[:16])
}
