package kube

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// identity is what makes the API server this cluster's and nobody else's.
type identity struct {
	// ca is the certificate that signed the server's, in PEM.
	ca []byte
	// admin and controller are bearer tokens, both in system:masters.
	admin, controller string
}

// newIdentity writes serving.crt, serving.key, sa.key and tokens.csv into dir. The server could make its own
// certificate, but then nobody would know what to trust before it has started.
func newIdentity(dir string) (identity, error) {
	id := identity{admin: rand.Text(), controller: rand.Text()}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return id, err
	}
	now := time.Now()
	cert := &x509.Certificate{
		SerialNumber:          big.NewInt(now.UnixNano()),
		Subject:               pkix.Name{CommonName: "kube-apiserver of a Mooring test"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.AddDate(1, 0, 0),
		IsCA:                  true, // it signs itself, so it is its own authority
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:              []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err != nil {
		return id, err
	}
	id.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	accounts, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return id, err
	}
	tokens := fmt.Sprintf("%s,admin,admin,system:masters\n%s,system:kube-controller-manager,controllers,system:masters\n",
		id.admin, id.controller)
	return id, errors.Join(
		os.WriteFile(filepath.Join(dir, "serving.crt"), id.ca, 0o600),
		writeKey(filepath.Join(dir, "serving.key"), key),
		writeKey(filepath.Join(dir, "sa.key"), accounts),
		os.WriteFile(filepath.Join(dir, "tokens.csv"), []byte(tokens), 0o600),
	)
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}
