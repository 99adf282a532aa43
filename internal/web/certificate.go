package web

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"os"
	"sync"
	"time"
)

// Certificate is the server's: that of two files, read again when it was renewed, or one that it makes for itself.
type Certificate struct {
	CertFile, KeyFile string // "": it makes one
	Now               func() time.Time

	mu   sync.Mutex
	own  *tls.Certificate
	read time.Time // the time of CertFile when it was read
}

// selfSignedFor is for how long a certificate of our own is valid; it is made anew after half of that.
const selfSignedFor = 365 * 24 * time.Hour

// Get returns it, for tls.Config.GetCertificate.
func (c *Certificate) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.CertFile == "" {
		return c.selfSigned()
	}
	info, err := os.Stat(c.CertFile)
	if err != nil && c.own != nil {
		return c.own, nil // it is being replaced
	}
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	if c.own != nil && info.ModTime().Equal(c.read) {
		return c.own, nil
	}
	pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	switch {
	case err == nil:
		c.own, c.read = &pair, info.ModTime()
	case c.own == nil:
		return nil, fmt.Errorf("certificate: %w", err)
	}
	return c.own, nil // half written: the one before goes on
}

func (c *Certificate) selfSigned() (*tls.Certificate, error) {
	now := c.Now()
	if c.own != nil && now.Sub(c.read) < selfSignedFor/2 {
		return c.own, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	name, err := os.Hostname()
	if err != nil {
		name = "plimsoll"
	}
	t := &x509.Certificate{SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "plimsoll " + name},
		DNSNames:  []string{name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(selfSignedFor), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	c.own, c.read = &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, now
	return c.own, nil
}
