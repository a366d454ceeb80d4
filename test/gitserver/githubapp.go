package gitserver

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

const apiPrefix = "/api/v3/"

// GitHubApp plays the part of GitHub's API that sells tokens to a GitHub App, and knows which of them are good for Git.
// It checks signatures and claims of the JWTs as GitHub's documentation describes them. The zero value of each field is
// an App in good order. Give it to a server with HTTPOptions.App; Set changes it later.
type GitHubApp struct {
	// ID of the App, Installation its number, Owner whose it is.
	ID, Installation, Owner string
	// OwnerIsUser lets the owner be found among users, not organisations.
	OwnerIsUser bool
	// Key is the public half of the App's key.
	Key *rsa.PublicKey
	// Life of a token; an hour when zero.
	Life time.Duration
	// Skew is how far the server's clock is ahead.
	Skew time.Duration
	// Suspended installations get no tokens.
	Suspended bool
	// Status answers every request of the API, with Header and Message.
	Status  int
	Header  map[string]string
	Message string
	// Delay of each token.
	Delay time.Duration

	mu     sync.Mutex
	tokens map[string]time.Time
	minted int
	asked  int
}

// Set changes the App while it is used.
func (a *GitHubApp) Set(change func(*GitHubApp)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(a)
}

// Revoke all tokens.
func (a *GitHubApp) Revoke() { a.Set(func(a *GitHubApp) { clear(a.tokens) }) }

// Minted is how many tokens were sold, Asked how many requests the API has seen.
func (a *GitHubApp) Minted() (minted, asked int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.minted, a.asked
}

// Tokens are all that are good now.
func (a *GitHubApp) Tokens() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []string
	for token := range a.tokens {
		all = append(all, token)
	}
	return all
}

func (a *GitHubApp) authorized(r *http.Request) bool {
	user, token, ok := r.BasicAuth()
	a.mu.Lock()
	defer a.mu.Unlock()
	return ok && user == "x-access-token" && time.Now().Before(a.tokens[token])
}

func (a *GitHubApp) serve(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	now := time.Now().Add(a.Skew)
	w.Header().Set("Date", now.UTC().Format(http.TimeFormat))
	answer := func(status int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body)
	}
	no := func(status int, message string) { answer(status, map[string]string{"message": message}) }
	if a.Status != 0 {
		for k, v := range a.Header {
			w.Header().Set(k, v)
		}
		no(a.Status, a.Message)
		return
	}
	bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if status, err := a.check(bearer, now); err != nil {
		no(status, err.Error())
		return
	}
	kind := "orgs"
	if a.OwnerIsUser {
		kind = "users"
	}
	switch path := strings.TrimPrefix(r.URL.Path, apiPrefix); {
	case r.Method == http.MethodGet && path == kind+"/"+a.Owner+"/installation":
		answer(http.StatusOK, map[string]any{"id": json.Number(a.Installation), "app_id": json.Number(a.ID)})
	case r.Method == http.MethodPost && path == "app/installations/"+a.Installation+"/access_tokens" && a.Suspended:
		no(http.StatusForbidden, "This installation has been suspended")
	case r.Method == http.MethodPost && path == "app/installations/"+a.Installation+"/access_tokens":
		select {
		case <-time.After(a.Delay):
		case <-r.Context().Done():
			return
		}
		life := a.Life
		if life == 0 {
			life = time.Hour
		}
		token := "ghs_" + rand.Text()
		if a.tokens == nil {
			a.tokens = map[string]time.Time{}
		}
		a.tokens[token] = time.Now().Add(life)
		a.minted++
		answer(http.StatusCreated, map[string]any{
			"token": token, "expires_at": now.Add(life).UTC().Format(time.RFC3339Nano),
			"permissions": map[string]string{"contents": "write", "metadata": "read"}, "repository_selection": "selected",
		})
	default:
		no(http.StatusNotFound, "Not Found")
	}
}

// check a JWT: its signature, and its times by the server's clock.
func (a *GitHubApp) check(token string, now time.Time) (status int, _ error) {
	var claims struct {
		Issuer  string `json:"iss"`
		Issued  int64  `json:"iat"`
		Expires int64  `json:"exp"`
	}
	var header struct {
		Algorithm string `json:"alg"`
	}
	undecodable := fmt.Errorf("%s", "A JSON web token could not be decoded") // as GitHub writes it
	parts := strings.Split(token, ".")
	if len(parts) != 3 || decodePart(parts[0], &header) != nil || decodePart(parts[1], &claims) != nil || header.Algorithm != "RS256" {
		return http.StatusUnauthorized, undecodable
	}
	if claims.Issuer != a.ID {
		return http.StatusNotFound, fmt.Errorf("%s", "Integration not found")
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err != nil || rsa.VerifyPKCS1v15(a.Key, crypto.SHA256, sum[:], signature) != nil {
		return http.StatusUnauthorized, undecodable
	}
	issued, expires := time.Unix(claims.Issued, 0), time.Unix(claims.Expires, 0)
	switch {
	case issued.After(now):
		return http.StatusUnauthorized, fmt.Errorf("'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued")
	case !expires.After(now):
		return http.StatusUnauthorized, fmt.Errorf("'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires")
	case expires.After(now.Add(10 * time.Minute)):
		return http.StatusUnauthorized, fmt.Errorf("'Expiration time' claim ('exp') is too far in the future")
	}
	return 0, nil
}

func decodePart(part string, into any) error {
	text, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}
