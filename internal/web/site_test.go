package web

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"plimsoll/internal/plan"
	"plimsoll/internal/report"
)

// TestOpenToTheNetworkOnlyWithAccess: beyond the loopback interface somebody has to say who may read.
func TestOpenToTheNetworkOnlyWithAccess(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", "[::]:0", ":0"} {
		_, err := OpenSite(SiteOptions{Listen: []string{"127.0.0.1:0", address}, Now: time.Now, Log: quiet()})
		var hinted interface{ Hint() string }
		if !errors.As(err, &hinted) || !strings.Contains(hinted.Hint(), "--token-file") {
			t.Errorf("%s: %v, want a refusal with a hint", address, err)
		}
	}
}

// network is a site on all addresses, for one test.
type network struct {
	t           *testing.T
	port        string
	authorities *issuer
	client      *tls.Config
}

// onNetwork opens one where a token or a certificate permits reading.
func onNetwork(t *testing.T, token string) *network {
	t.Helper()
	_, c := open(t, &fake{status: healthy()}, nil)
	n := &network{t: t, authorities: authority(t), client: &tls.Config{InsecureSkipVerify: true}}
	certificate := &Certificate{Now: time.Now}
	site, err := OpenSite(SiteOptions{Listen: []string{"0.0.0.0:0"}, Agent: reader(c).socket, Now: later, Log: quiet(),
		Access: AnyOf{ClientCertificate{}, TokenFile(token)}, Page: fstest.MapFS{"assets/app.js": {}},
		TLS: &tls.Config{GetCertificate: certificate.Get, ClientAuth: tls.VerifyClientCertIfGiven,
			ClientCAs: n.authorities.pool}})
	if err != nil {
		t.Fatal(err)
	}
	during(t, site.Serve)
	n.port = site.Addrs()[0][strings.LastIndex(site.Addrs()[0], ":"):]
	return n
}

// ask asks for a path, with an Authorization header unless it is "".
func (n *network) ask(path, authorization string, want int) {
	n.t.Helper()
	r, err := http.NewRequest(http.MethodGet, "https://127.0.0.1"+n.port+path, nil)
	if err != nil {
		n.t.Fatal(err)
	}
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	transport := &http.Transport{TLSClientConfig: n.client}
	defer transport.CloseIdleConnections()
	res, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		n.t.Fatalf("%s: %v", path, err)
	}
	defer res.Body.Close()
	if res.StatusCode != want { // the answer may be a stream, which does not end
		n.t.Errorf("%s %q: %d, want %d", path, authorization, res.StatusCode, want)
		return
	}
	text, err := io.ReadAll(res.Body)
	if err != nil {
		n.t.Errorf("%s %q: %v", path, authorization, err)
	}
	if want != http.StatusOK && strings.Contains(string(text), "nginx") {
		n.t.Errorf("%s: a refusal names a container: %s", path, text)
	}
}

// TestAccess: beyond the loopback interface a page is for who may read, and over TLS only. Probes are open,
// and say nothing.
func TestAccess(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	write := func(text string) {
		if err := os.WriteFile(token, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("secret\n")
	n := onNetwork(t, token)
	for _, path := range []string{"/metrics", "/api/v1/status", "/api/v1/report", "/api/v1/view", "/api/v1/live",
		"/api/v1/container?id=/lab/a", "/api/v1/snapshot", "/assets/app.js", "/"} {
		n.ask(path, "", http.StatusUnauthorized)
		n.ask(path, "Bearer wrong", http.StatusUnauthorized)
		n.ask(path, "Basic secret", http.StatusUnauthorized)
	}
	n.ask("/healthz", "", http.StatusOK)
	n.ask("/readyz", "", http.StatusOK)
	n.ask("/livez", "", http.StatusOK)
	n.ask("/nowhere", "", http.StatusNotFound)
	n.ask("/metrics", "Bearer secret", http.StatusOK)
	n.ask("/api/v1/plan?watch=1s", "Bearer secret", http.StatusNotFound) // not on the network
	write("another")
	n.ask("/metrics", "Bearer secret", http.StatusUnauthorized)
	n.ask("/metrics", "bearer another", http.StatusOK)
	write("")
	n.ask("/metrics", "Bearer ", http.StatusUnauthorized)
}

// closed is an Access that notes the paths that it is asked about, and permits none.
type closed struct{ asked []string }

func (c *closed) Permit(r *http.Request) error {
	c.asked = append(c.asked, r.URL.Path)
	return ErrForbidden("somebody", r.URL.Path)
}

// TestOnlyKnownPathsAreAskedAbout: whoever asks for many paths, or spells one in many ways, has Access asked about few.
func TestOnlyKnownPathsAreAskedAbout(t *testing.T) {
	o := SiteOptions{Page: fstest.MapFS{}, Now: later, Log: quiet()}
	s := &Site{pages: newSide(newAnswers(local{}, later, quiet())), watch: newWatcher(nil, o)}
	for request, want := range map[string]string{"GET /metrics": "[/metrics] 403", "HEAD /metrics": "[/metrics] 403",
		"GET /%6detrics": "[/metrics] 403", "GET //metrics": "[/metrics] 403", "GET /a/../metrics": "[/metrics] 403",
		"GET /": "[/] 403", "GET /api/v1/container?id=/a": "[/api/v1/container] 403", "GET /assets/1": "[/assets/] 403",
		"GET /assets/a/2": "[/assets/] 403", "GET /livez": "[] 200", "GET /nowhere": "[] 404",
		"GET /api/v1/plan": "[] 404", "GET /api/v1/view/": "[] 404", "POST /metrics": "[] 405"} {
		access, w := &closed{}, httptest.NewRecorder()
		method, path, _ := strings.Cut(request, " ")
		s.permit(access, s.handler(o)).ServeHTTP(w, httptest.NewRequest(method, path, nil))
		if got := fmt.Sprint(access.asked, " ", w.Code); got != want {
			t.Errorf("%s: %s, want %s", request, got, want)
		}
	}
}

// TestTokensAreWhole: no part of a token, and nothing around it, permits to read.
func TestTokensAreWhole(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	permits := func(token string) bool {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		return TokenFile(file).Permit(r) == nil
	}
	if !permits("secret") {
		t.Error("the token is refused")
	}
	wrong := []string{"", "s", "secre", "ecret", "secrets", "Secret", "secret secret", "secret\x00", "\nsecret\nx"}
	for i := range 2000 {
		wrong = append(wrong, fmt.Sprint(i))
	}
	for _, token := range wrong {
		if permits(token) {
			t.Errorf("%q is taken for the token", token)
		}
	}
}

// TestCertificatesAreVerified: a certificate that was shown and not verified permits nothing, nor does TLS alone.
func TestCertificatesAreVerified(t *testing.T) {
	for _, state := range []*tls.ConnectionState{nil, {}, {PeerCertificates: []*x509.Certificate{authority(t).cert}}} {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		if r.TLS = state; (ClientCertificate{}).Permit(r) == nil {
			t.Errorf("%+v is permitted", state)
		}
	}
}

// TestClientCertificates: one of the named authorities opens the pages, and any other one nothing.
func TestClientCertificates(t *testing.T) {
	n := onNetwork(t, filepath.Join(t.TempDir(), "none"))
	n.client.Certificates = []tls.Certificate{n.authorities.issue(t)}
	n.ask("/metrics", "", http.StatusOK)
	n.client.Certificates = []tls.Certificate{authority(t).issue(t)}
	transport := &http.Transport{TLSClientConfig: n.client}
	if r, err := (&http.Client{Transport: transport}).Get("https://127.0.0.1" + n.port + "/metrics"); err == nil {
		t.Errorf("a stranger's certificate is taken: %s", r.Status)
		r.Body.Close()
	}
	if r, err := http.Get("http://127.0.0.1" + n.port + "/metrics"); err == nil {
		r.Body.Close()
		if r.StatusCode == http.StatusOK {
			t.Error("it answers without TLS")
		}
	}
}

// issuer makes certificates.
type issuer struct {
	pool *x509.CertPool
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func authority(t *testing.T) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"},
		NotBefore: time.Now().Add(-time.Hour),
		NotAfter:  time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(c)
	return &issuer{pool, c, key}
}

func (i *issuer) issue(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "prometheus"},
		NotBefore: time.Now().Add(-time.Hour),
		NotAfter:  time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{
			x509.ExtKeyUsageClientAuth}, KeyUsage: x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, c, i.cert, &key.PublicKey, i.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TestCertificateIsReadAgain: a renewed certificate is used without a restart, and a half-written one does no harm.
func TestCertificateIsReadAgain(t *testing.T) {
	dir, authority := t.TempDir(), authority(t)
	c := &Certificate{CertFile: filepath.Join(dir, "crt"), KeyFile: filepath.Join(dir, "key"), Now: time.Now}
	if _, err := c.Get(nil); err == nil {
		t.Error("no file, and no error")
	}
	at := time.Unix(1000, 0)
	write := func(pair tls.Certificate, whole bool) {
		key, err := x509.MarshalECPrivateKey(pair.PrivateKey.(*ecdsa.PrivateKey))
		if err != nil {
			t.Fatal(err)
		}
		text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})
		if !whole {
			text = text[:len(text)/2]
		}
		if err := errors.Join(os.WriteFile(c.CertFile, text, 0o600),
			os.WriteFile(c.KeyFile, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: key}),
				0o600)); err != nil {
			t.Fatal(err)
		}
		at = at.Add(time.Second)
		if err := os.Chtimes(c.CertFile, at, at); err != nil {
			t.Fatal(err)
		}
	}
	is := func(want tls.Certificate) {
		t.Helper()
		got, err := c.Get(nil)
		if err != nil || string(got.Certificate[0]) != string(want.Certificate[0]) {
			t.Errorf("another certificate, or %v", err)
		}
	}
	first, second := authority.issue(t), authority.issue(t)
	write(first, true)
	is(first)
	write(second, false)
	is(first)
	write(second, true)
	is(second)
	if err := os.Remove(c.CertFile); err != nil {
		t.Fatal(err)
	}
	is(second)
}

// TestHost: a browser that was led here by another site's name (DNS rebinding) is refused.
func TestHost(t *testing.T) {
	s := &Site{pages: newSide(newAnswers(local{}, time.Now, quiet()))}
	h := s.checkHost([]string{"Node-7.Example."}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for host, want := range map[string]int{"127.0.0.1:12779": 200, "[::1]:12779": 200, "localhost:1": 200,
		"LOCALHOST": 200, "10.1.2.3": 200,
		"node-7.example:12779": 200, "Node-7.example.": 200, "evil.example:12779": 421, "127.0.0.1.evil.example": 421,
		"": 421, "localhost.evil": 421,
		"evil-node-7.example": 421, "node-7.example.evil": 421} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = host
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%q: %d, want %d", host, w.Code, want)
		}
	}
}

// TestSiteWithoutAgent: the site outlives the agent, and says that it is gone.
func TestSiteWithoutAgent(t *testing.T) {
	site, err := OpenSite(SiteOptions{Listen: []string{"127.0.0.1:0"}, Agent: filepath.Join(t.TempDir(), ReadSocket),
		Now: time.Now, Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	during(t, site.Serve)
	url := "http://" + site.Addrs()[0]
	for path, want := range map[string]string{"/healthz": "not ok", "/readyz": "not ok", "/metrics": ErrNoAgent.Error(),
		"/api/v1/status": ErrNoAgent.Error()} {
		if code, body := get(t, url+path); code != http.StatusServiceUnavailable || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	a := &fake{status: healthy()}
	server, err := Listen(a, Options{Read: ReadAccess{site.agent.socket, Nobody}, Now: later, Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	during(t, server.Serve)
	if code, body := get(t, url+"/api/v1/status"); code != http.StatusOK {
		t.Errorf("the agent is back: %d %s", code, body)
	}
}

// TestReadSocketOnlyReads: nobody steers through it, and no dry run is made.
func TestReadSocketOnlyReads(t *testing.T) {
	a := &fake{status: healthy()}
	dry := false
	_, c := open(t, a, func(s *Server) {
		s.dryRun = func(context.Context, string, time.Duration) ([]plan.Change, error) { dry = true; return nil, nil }
	})
	r := reader(c)
	if _, err := r.Status(t.Context()); err != nil {
		t.Error(err)
	}
	var e *Error
	for _, name := range []string{"hold", "retire", "resume", "pause", "release"} {
		err := r.call(t.Context(), http.MethodPost, name, struct{}{}, &struct{}{})
		if !errors.As(err, &e) || e.Code != http.StatusMethodNotAllowed || len(a.calls) > 0 {
			t.Errorf("%s: %v, %v", name, err, a.calls)
		}
	}
	var p report.Plan
	if err := r.call(t.Context(), http.MethodGet, "plan?watch=0s", nil, &p); !errors.As(err, &e) ||
		e.Code != http.StatusNotFound || dry {
		t.Errorf("plan: %v, a dry run: %v", err, dry)
	}
	if _, err := c.Plan(t.Context(), "", 0); err != nil || !dry {
		t.Errorf("plan of the owner: %v, a dry run: %v", err, dry)
	}
}
