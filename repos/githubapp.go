package repos

import (
	"cmp"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"
)

// The keys of a Secret that describe a GitHub App; they are those of Flux.
const (
	keyAppID           = "githubAppID"
	keyAppInstallation = "githubAppInstallationID"
	keyAppOwner        = "githubAppInstallationOwner"
	keyAppKey          = "githubAppPrivateKey"
	keyAppBase         = "githubAppBaseURL"
)

const (
	publicAPI = "https://api.github.com"
	appUser   = "x-access-token" // whose password the token is, for Git over HTTP
)

// githubApp is an installation of a GitHub App. All remotes that have the same Secret share one, and with it the token.
// GitHub takes three steps: a JWT signed with the App's key says who we are, it buys a token of an hour that is good
// for the installation's repositories, and that token is the password.
type githubApp struct {
	id, owner string
	api       string // without a slash at its end
	key       *rsa.PrivateKey

	minting flights[struct{}, string]

	mu           sync.Mutex
	installation string // of the owner, once it was asked for
	current      appToken
	former       string // the token before it, which a server may still repeat
}

type appToken struct {
	text  string
	until time.Time // by our clock, and a little before it runs out
}

var (
	appIDForm  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`) // a number, or the client id that GitHub gives beside it
	numberForm = regexp.MustCompile(`^[0-9]{1,20}$`)
	ownerForm  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`)
)

// readApp reads the keys of a GitHub App; none is no App.
func (s *secrets) readApp(data map[string][]byte) error {
	value := func(key string) string { return strings.TrimSpace(string(data[key])) }
	id, installation, owner, key := value(keyAppID), value(keyAppInstallation), value(keyAppOwner), data[keyAppKey]
	switch {
	case id == "" && installation == "" && owner == "" && len(key) == 0 && value(keyAppBase) == "":
		return nil
	case s.username != "" || s.bearer != "":
		return failf(KindCredentials, "keep one of the two", "the keys of a GitHub App and %s or %s exclude each other", keyUsername, keyBearer)
	case id == "":
		return failf(KindCredentials, "add the App ID, which the App's settings show", "key %s is missing", keyAppID)
	case !appIDForm.MatchString(id):
		return failf(KindCredentials, "give the App ID as the App's settings show it, a number", "key %s is not the id of an App", keyAppID)
	case len(key) == 0:
		return failf(KindCredentials, "add a private key of the App: generate one in its settings", "key %s is missing", keyAppKey)
	case installation == "" && owner == "":
		return failf(KindCredentials, "give the number at the end of the installation's url, or the organisation or user that installed the App",
			"key %s or %s is missing", keyAppInstallation, keyAppOwner)
	case installation != "" && owner != "":
		return failf(KindCredentials, "keep one of the two", "keys %s and %s exclude each other", keyAppInstallation, keyAppOwner)
	case installation != "" && !numberForm.MatchString(installation):
		return failf(KindCredentials, "give the number at the end of the installation's url", "key %s is not a number", keyAppInstallation)
	case owner != "" && !ownerForm.MatchString(owner):
		return failf(KindCredentials, "give the name of the organisation or user alone, without a url", "key %s is not a name on GitHub", keyAppOwner)
	}
	signer, err := parseAppKey(key)
	if err != nil {
		return err
	}
	api, err := parseAppBase(value(keyAppBase))
	if err != nil {
		return err
	}
	s.app = &githubApp{id: id, owner: owner, installation: installation, api: api, key: signer}
	return nil
}

// parseAppKey reads PEM of both forms: PKCS#1, as GitHub writes it, and PKCS#8, as openssl converts it.
func parseAppKey(text []byte) (*rsa.PrivateKey, error) {
	const again = "give the .pem file as GitHub made it, with its line ends (--from-file); a key is generated in the App's settings"
	block, _ := pem.Decode(text)
	switch {
	case block == nil:
		return nil, failf(KindCredentials, again, "key %s is not PEM", keyAppKey)
	case block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "":
		return nil, failf(KindCredentials, "take the passphrase off: openssl pkey -in FILE", "key %s is encrypted", keyAppKey)
	}
	var parsed any
	var err error
	if block.Type == "RSA PRIVATE KEY" {
		parsed, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	} else {
		parsed, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	}
	key, ok := parsed.(*rsa.PrivateKey)
	switch {
	case err != nil: // its text is not passed on: it is about the key's content
		return nil, failf(KindCredentials, again, "key %s is not a private key that can be read (%s)", keyAppKey, clean(block.Type))
	case !ok:
		return nil, failf(KindCredentials, again, "key %s is not an RSA key", keyAppKey)
	case key.N.BitLen() < 2048:
		return nil, failf(KindCredentials, again, "key %s has %d bits; GitHub's have 2048", keyAppKey, key.N.BitLen())
	}
	return key, nil
}

func parseAppBase(base string) (string, error) {
	if base == "" {
		return publicAPI, nil
	}
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", failf(KindCredentials, "for GitHub Enterprise Server it is https://HOST/api/v3; leave it out for github.com",
			"key %s is not an https:// address alone", keyAppBase)
	}
	return strings.TrimRight(base, "/"), nil
}

// fits refuses to show a token of github.com to another host, which is what a forgotten base url would do.
func (a *githubApp) fits(host string) error {
	if a.api == publicAPI && !strings.EqualFold(host, "github.com") {
		return failf(KindCredentials, "for GitHub Enterprise Server add it: https://HOST/api/v3", "key %s is missing, and the url is not on github.com", keyAppBase)
	}
	return nil
}

// token gives the current token, or asks for one. Those who come meanwhile wait for the same request. fresh tells that
// the token was asked for just now.
func (a *githubApp) token(ctx context.Context, client *http.Client, timeout time.Duration) (text string, fresh bool, err error) {
	if text := a.valid(); text != "" {
		return text, false, nil
	}
	text, err = a.minting.do(ctx, struct{}{}, timeout, func(ctx context.Context, _ func()) (string, error) {
		if text := a.valid(); text != "" { // another came in between our look and our turn
			return text, nil
		}
		t, err := a.mint(ctx, client)
		if err != nil {
			return "", fmt.Errorf("ask for a token of GitHub App %s: %w", a.id, err)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		a.former, a.current = a.current.text, t
		return t.text, nil
	})
	return text, true, err
}

func (a *githubApp) valid() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Now().Before(a.current.until) {
		return a.current.text
	}
	return ""
}

// forget a token that a server refused, unless there is a newer one already.
func (a *githubApp) forget(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.current.text == text {
		a.current.until = time.Time{}
	}
}

// tokens are what must not be seen in a message.
func (a *githubApp) tokens() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return []string{a.current.text, a.former}
}

// mint buys a token. Its time is counted from the server's clock, since ours may be wrong.
func (a *githubApp) mint(ctx context.Context, client *http.Client) (appToken, error) {
	installation, err := a.find(ctx, client)
	if err != nil {
		return appToken{}, err
	}
	var answer struct {
		Token     string    `json:"token"`
		ExpiresAt time.Time `json:"expires_at"`
	}
	asked := time.Now()
	served, err := a.call(ctx, client, http.MethodPost, "/app/installations/"+installation+"/access_tokens", &answer)
	if err != nil {
		a.mu.Lock()
		if a.owner != "" && KindOf(err) == KindAuth { // installed anew, it has another number
			a.installation = ""
		}
		a.mu.Unlock()
		return appToken{}, err
	}
	life := answer.ExpiresAt.Sub(served)
	if answer.Token == "" || strings.ContainsFunc(answer.Token, func(r rune) bool { return r <= ' ' || r > '~' }) || life <= 0 {
		return appToken{}, failf(KindProtocol, "check "+keyAppBase+" in the Secret", "%s answers without a token that can be used", a.api)
	}
	return appToken{text: answer.Token, until: asked.Add(life - min(5*time.Minute, life/10))}, nil
}

// find gives the number of the installation. That of an owner is asked for once; GitHub has one path for organisations
// and another one for users.
func (a *githubApp) find(ctx context.Context, client *http.Client) (string, error) {
	a.mu.Lock()
	known := a.installation
	a.mu.Unlock()
	if known != "" {
		return known, nil
	}
	var answer struct {
		ID json.Number `json:"id"`
	}
	_, err := a.call(ctx, client, http.MethodGet, "/orgs/"+a.owner+"/installation", &answer)
	if _, ok := errors.AsType[missing](err); ok {
		_, err = a.call(ctx, client, http.MethodGet, "/users/"+a.owner+"/installation", &answer)
	}
	if err != nil {
		return "", err
	}
	if !numberForm.MatchString(answer.ID.String()) {
		return "", failf(KindProtocol, "check "+keyAppBase+" in the Secret", "%s answers without the number of an installation", a.api)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.installation = answer.ID.String()
	return a.installation, nil
}

// jwt says who we are. It begins a minute back, as GitHub advises, and lives for less than the ten minutes that it
// allows.
func (a *githubApp) jwt(now time.Time) (string, error) {
	claims, err := json.Marshal(map[string]any{"iss": a.id, "iat": now.Add(-time.Minute).Unix(), "exp": now.Add(8 * time.Minute).Unix()})
	if err != nil {
		return "", fmt.Errorf("write JWT: %w", err)
	}
	part := base64.RawURLEncoding.EncodeToString
	signed := part([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + part(claims)
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, a.key, crypto.SHA256, sum[:])
	if err != nil {
		return "", failf(KindCredentials, "generate another one in the App's settings", "key %s does not sign", keyAppKey)
	}
	return signed + "." + part(signature), nil
}

// where names the installation for people.
func (a *githubApp) where() string {
	if a.owner != "" {
		return "of " + a.owner
	}
	return cmp.Or(a.installation, "?")
}
