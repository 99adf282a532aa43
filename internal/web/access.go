package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// Bearer is the token of a request; "" where it has none.
func Bearer(r *http.Request) string {
	kind, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(kind, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// AnyOf permits what one of them permits, and says what the last one has against it.
type AnyOf []Access

// Permit asks one after the other.
func (a AnyOf) Permit(r *http.Request) error {
	var err error
	for _, one := range a {
		if err = one.Permit(r); err == nil {
			return nil
		}
	}
	return err
}

// TokenFile permits who has the token that the file has now.
type TokenFile string

// Permit reads the file: a token that was replaced is void at once.
func (f TokenFile) Permit(r *http.Request) error {
	data, err := os.ReadFile(string(f))
	if err != nil {
		return &Error{Msg: "the token cannot be read", wrapped: err, Code: http.StatusInternalServerError,
			Advice: "--token-file: " + err.Error()}
	}
	want := strings.TrimSpace(string(data))
	a, b := sha256.Sum256([]byte(want)), sha256.Sum256([]byte(Bearer(r)))
	if want == "" || subtle.ConstantTimeCompare(a[:], b[:]) != 1 {
		return ErrUnauthorized()
	}
	return nil
}

// ClientCertificate permits who has a certificate of the authorities in the server's tls.Config.ClientCAs.
type ClientCertificate struct{}

// Permit relies on the handshake (tls.VerifyClientCertIfGiven).
func (ClientCertificate) Permit(r *http.Request) error {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return ErrUnauthorized()
	}
	return nil
}

// ErrUnauthorized answers a request that does not show who sent it.
func ErrUnauthorized() error {
	return &Error{Msg: "it is not known who asks", Code: http.StatusUnauthorized,
		Advice: "send Authorization: Bearer TOKEN, or a client certificate (docs/REFERENCE.md)"}
}

// ErrForbidden answers a request of somebody who may not read the path.
func ErrForbidden(who, path string) error {
	return &Error{Msg: who + " may not read " + path, Code: http.StatusForbidden,
		Advice: "a ClusterRole with nonResourceURLs: [" + path + "] and verbs: [get] permits it"}
}

// knownHost says whether a Host header is an address, localhost, or one of the names.
func knownHost(host string, names []string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = hostName(host)
	if _, err := netip.ParseAddr(host); err == nil || host == "localhost" {
		return true
	}
	return slices.ContainsFunc(names, func(name string) bool { return hostName(name) == host })
}

// hostName is one spelling of all that mean the same host.
func hostName(host string) string {
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}
