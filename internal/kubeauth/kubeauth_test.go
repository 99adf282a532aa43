package kubeauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"

	"plimsoll/internal/web"
)

// cluster knows one token of a user who may get /metrics, and what every account of a cluster may.
type cluster struct {
	tokens, accesses   int
	down, closed, mute bool // mute: no answer about rights
}

func (c *cluster) Token(_ context.Context, t *authentication.TokenReview) error {
	c.tokens++
	if c.down {
		return errors.New("connection refused by 10.0.0.1")
	}
	t.Status.Authenticated = t.Spec.Token == "good"
	t.Status.User = authentication.UserInfo{Username: "prometheus", UID: "u1", Groups: []string{"scrapers"},
		Extra: map[string]authentication.ExtraValue{"a": {"b"}}}
	return nil
}

func (c *cluster) Access(_ context.Context, s *authorization.SubjectAccessReview) error {
	c.accesses++
	if c.mute {
		return errors.New("forbidden by 10.0.0.1")
	}
	at, spec := s.Spec.NonResourceAttributes, s.Spec
	s.Status.Allowed = !c.closed && spec.User == "prometheus" && spec.UID == "u1" && spec.Groups[0] == "scrapers" &&
		spec.Extra["a"][0] == "b" && at.Verb == "get" &&
		(at.Path == "/metrics" || strings.HasPrefix(at.Path, "/api/")) // as system:discovery permits
	return nil
}

func TestPermit(t *testing.T) {
	now := time.Unix(1000, 0)
	c := &cluster{}
	a := newAPI(c, c, func() time.Time { return now })
	permit := func(token, path string, want, tokens, accesses int) {
		t.Helper()
		r := httptest.NewRequest(http.MethodGet, path, nil)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		code := http.StatusOK
		var e *web.Error
		if err := a.Permit(r); errors.As(err, &e) {
			code = e.Code
			if strings.Contains(e.Msg+e.Advice, "10.0.0.1") {
				t.Errorf("the answer says what the API server said: %s", e.Msg)
			}
		} else if err != nil {
			t.Fatal(err)
		}
		if code != want || c.tokens != tokens || c.accesses != accesses {
			t.Errorf("%q %s: %d after %d and %d questions, want %d after %d and %d", token, path, code, c.tokens,
				c.accesses, want, tokens, accesses)
		}
	}
	permit("", "/metrics", 401, 0, 0)
	permit(string(make([]byte, maxToken+1)), "/metrics", 401, 0, 0)
	permit("good", "/metrics", 200, 1, 1)
	permit("good", "/metrics", 200, 1, 1) // known
	permit("good", "/api/v1/status", 403, 2, 2)
	permit("good", "/api/v1/status", 403, 2, 2)
	permit("bad", "/metrics", 401, 3, 2)
	permit("bad", "/metrics", 401, 3, 2)
	now = now.Add(deniedFor + time.Second)
	permit("bad", "/metrics", 401, 4, 2)
	permit("good", "/metrics", 200, 4, 2)
	c.closed = true
	permit("good", "/metrics", 200, 4, 2)
	now = now.Add(allowedFor)
	permit("good", "/metrics", 403, 5, 3) // the right was taken away
	c.down = true
	permit("other", "/metrics", 503, 6, 3)
	c.down, c.closed = false, false
	permit("other", "/metrics", 401, 7, 3) // no answer is not kept
	now = now.Add(allowedFor)
	c.mute = true
	permit("good", "/metrics", 503, 8, 4)
	c.mute = false
	permit("good", "/metrics", 200, 9, 5)
}

// TestAnswersAreBounded: whoever sends many tokens does not have all of the answers kept.
func TestAnswersAreBounded(t *testing.T) {
	a := newAPI(&cluster{}, &cluster{}, time.Now)
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	for i := range 2 * maxAnswers {
		r.Header.Set("Authorization", fmt.Sprint("Bearer ", i))
		if err := a.Permit(r); err == nil {
			t.Fatalf("token %d is permitted", i)
		}
	}
	if n := len(a.answers.Keys()); n != maxAnswers {
		t.Errorf("%d answers are kept, want %d", n, maxAnswers)
	}
}

// TestReadersAreAskedAbout: while others use up all questions, an address that somebody read from still has its own.
func TestReadersAreAskedAbout(t *testing.T) {
	now := time.Unix(1000, 0)
	ofReaders, ofOthers := &cluster{}, &cluster{}
	a := newAPI(ofReaders, ofOthers, func() time.Time { return now })
	permit := func(from, token string) error {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.RemoteAddr = from
		r.Header.Set("Authorization", "Bearer "+token)
		return a.Permit(r)
	}
	if err := permit("10.0.0.1:1", "good"); err != nil {
		t.Fatal(err)
	}
	for i := range 2 * maxAnswers {
		_ = permit(fmt.Sprintf("10.9.%d.%d:1", i/250, i%250), fmt.Sprint(i))
	}
	ofOthers.down = true
	now = now.Add(readerFor - time.Second)
	if err := permit("10.0.0.1:2", "good"); err != nil || ofReaders.tokens != 1 {
		t.Errorf("a reader is kept out: %v, %d questions", err, ofReaders.tokens)
	}
	if err := permit("10.0.0.2:1", "good"); err != nil {
		t.Errorf("the answer is known: %v", err)
	}
	if err := permit("10.0.0.2:1", "bad"); err == nil || ofReaders.tokens != 1 {
		t.Errorf("another one takes the readers' questions: %v, %d", err, ofReaders.tokens)
	}
	now = now.Add(readerFor + time.Second)
	if err := permit("10.0.0.1:3", "good"); err == nil {
		t.Error("an address is a reader's for ever")
	}
}
