// Package kubeauth asks a cluster who sends a request, and whether that may read its path.
//
// # Approach
//
// A bearer token is reviewed by the API server (TokenReview), and its user's right by a SubjectAccessReview of a
// nonResourceURL with the verb get, as the kubelet and kube-rbac-proxy do. It is the path itself, but for the API,
// whose paths are asked for below /plimsoll: every account of a cluster may get /api/* (ClusterRole system:discovery).
// Both answers are kept: yes for allowedFor, no for deniedFor. The table of answers is bounded, and holds hashes in
// place of tokens. Addresses from which somebody might read within the last hour have a part of the questions to
// themselves, so that others with many bad tokens keep no reader out.
//
// # Known limits
//
// A right that was taken away lasts for allowedFor, and a stream of events for a minute more. While the API server is
// away nobody new may read. A reader at an address that is new waits behind all others that are.
package kubeauth

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"plimsoll/internal/web"
)

const (
	allowedFor = time.Minute
	deniedFor  = 10 * time.Second
	readerFor  = time.Hour // after the last question that was answered with yes
	maxAnswers = 1024
	maxToken   = 16 << 10
	askTimeout = 5 * time.Second
	// asks and askBurst bound the questions a second of readers, and of all others, so that a client with many bad
	// tokens cannot flood the API server.
	asks, askBurst = 5, 20
)

// API asks one API server.
type API struct {
	ofReaders, ofOthers reviewer              // the same API server; each has its own bound
	answers             *cache.LRUExpireCache // key: error or nil
	readers             *cache.LRUExpireCache // addresses
}

// reviewer is the part of an API server that is asked.
type reviewer interface {
	Token(context.Context, *authentication.TokenReview) error
	Access(context.Context, *authorization.SubjectAccessReview) error
}

// key names a question.
type key struct {
	token [sha256.Size]byte
	right string
}

// Connect makes a client of the API server of a kubeconfig file, or of the cluster in which this process is a pod. It
// sends no request yet.
func Connect(kubeconfig, userAgent string, now func() time.Time) (*API, error) {
	read := rest.InClusterConfig
	if kubeconfig != "" {
		read = func() (*rest.Config, error) { return clientcmd.BuildConfigFromFlags("", kubeconfig) }
	}
	config, err := read()
	if err != nil {
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{authentication.AddToScheme, authorization.AddToScheme} {
		if err := add(types); err != nil {
			return nil, fmt.Errorf("kubernetes client: %w", err)
		}
	}
	config.NegotiatedSerializer = serializer.NewCodecFactory(types).WithoutConversion()
	config.UserAgent, config.QPS, config.Burst, config.Timeout = userAgent, asks, askBurst, askTimeout
	var ofReaders, ofOthers client
	for _, c := range []*client{&ofReaders, &ofOthers} {
		for group, to := range map[schema.GroupVersion]**rest.RESTClient{authentication.SchemeGroupVersion: &c.token,
			authorization.SchemeGroupVersion: &c.access} {
			config.APIPath, config.GroupVersion = "/apis", &group
			if *to, err = rest.RESTClientFor(config); err != nil {
				return nil, fmt.Errorf("kubernetes client: %w", err)
			}
		}
	}
	return newAPI(ofReaders, ofOthers, now), nil
}

func newAPI(ofReaders, ofOthers reviewer, now func() time.Time) *API {
	table := func() *cache.LRUExpireCache { return cache.NewLRUExpireCacheWithClock(maxAnswers, clock(now)) }
	return &API{ofReaders, ofOthers, table(), table()}
}

type clock func() time.Time

func (c clock) Now() time.Time { return c() }

// Permit returns nil where the request may read its path.
func (a *API) Permit(r *http.Request) error {
	token := web.Bearer(r)
	if token == "" || len(token) > maxToken {
		return web.ErrUnauthorized()
	}
	k := key{sha256.Sum256([]byte(token)), Right(r.URL.Path)}
	if known, ok := a.answers.Get(k); ok {
		err, _ := known.(error)
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), askTimeout)
	defer cancel()
	address, _, _ := net.SplitHostPort(r.RemoteAddr)
	server := a.ofOthers
	if _, ok := a.readers.Get(address); ok {
		server = a.ofReaders
	}
	final, err := ask(ctx, server, token, k.right)
	switch {
	case final && err == nil:
		a.answers.Add(k, nil, allowedFor)
		a.readers.Add(address, nil, readerFor)
	case final:
		a.answers.Add(k, err, deniedFor)
	}
	return err
}

// Right is the nonResourceURL whose readers may read a path.
func Right(path string) string {
	if strings.HasPrefix(path, "/api/") {
		return "/plimsoll" + path
	}
	return path
}

// ask asks the API server; final says that it answered.
func ask(ctx context.Context, server reviewer, token, right string) (final bool, err error) {
	t := &authentication.TokenReview{Spec: authentication.TokenReviewSpec{Token: token}}
	if err := server.Token(ctx, t); err != nil {
		return false, unknown(err)
	}
	if !t.Status.Authenticated {
		return true, web.ErrUnauthorized()
	}
	user := t.Status.User
	extra := map[string]authorization.ExtraValue{}
	for name, values := range user.Extra {
		extra[name] = authorization.ExtraValue(values)
	}
	s := &authorization.SubjectAccessReview{Spec: authorization.SubjectAccessReviewSpec{User: user.Username,
		UID: user.UID, Groups: user.Groups,
		Extra: extra, NonResourceAttributes: &authorization.NonResourceAttributes{Path: right, Verb: "get"}}}
	if err := server.Access(ctx, s); err != nil {
		return false, unknown(err)
	}
	if !s.Status.Allowed {
		return true, web.ErrForbidden(user.Username, right)
	}
	return true, nil
}

// unknown says that the API server did not answer. What it said may name things of the cluster, and is not passed on.
func unknown(error) error {
	return &web.Error{Msg: "the API server did not say who asks", Code: http.StatusServiceUnavailable,
		Advice: "the ServiceAccount of plimsoll serve needs create on tokenreviews and subjectaccessreviews " +
			"(system:auth-delegator)"}
}

// client is an API server over the network. The clientset would bring the types of every API group into memory.
type client struct{ token, access *rest.RESTClient }

func (c client) Token(ctx context.Context, t *authentication.TokenReview) error {
	return c.token.Post().Resource("tokenreviews").Body(t).Do(ctx).Into(t)
}

func (c client) Access(ctx context.Context, s *authorization.SubjectAccessReview) error {
	return c.access.Post().Resource("subjectaccessreviews").Body(s).Do(ctx).Into(s)
}
