// Package kubeauth asks a cluster who sends a request, and whether that may read its path.
//
// # Approach
//
// A bearer token is reviewed by the API server (TokenReview), and its user's right by a SubjectAccessReview of a
// nonResourceURL with the verb get, as the kubelet and kube-rbac-proxy do. Both answers are kept: yes for allowedFor, no for
// deniedFor. The table of answers is bounded, and holds hashes in place of tokens.
//
// # Known limits
//
// A right that was taken away lasts for allowedFor. While the API server is away nobody new may read.
package kubeauth

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
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
	maxAnswers = 1024
	maxToken   = 16 << 10
	askTimeout = 5 * time.Second
	// asks and askBurst bound the questions a second, so that a client with many bad tokens cannot flood the API server.
	asks, askBurst = 5, 20
)

// API asks one API server.
type API struct {
	reviewer reviewer
	answers  *cache.LRUExpireCache // key: error or nil
}

// reviewer is the part of an API server that is asked.
type reviewer interface {
	Token(context.Context, *authentication.TokenReview) error
	Access(context.Context, *authorization.SubjectAccessReview) error
}

// key names a question.
type key struct {
	token [sha256.Size]byte
	path  string
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
	var c client
	for group, to := range map[schema.GroupVersion]**rest.RESTClient{authentication.SchemeGroupVersion: &c.token, authorization.SchemeGroupVersion: &c.access} {
		config.APIPath, config.GroupVersion = "/apis", &group
		if *to, err = rest.RESTClientFor(config); err != nil {
			return nil, fmt.Errorf("kubernetes client: %w", err)
		}
	}
	return newAPI(c, now), nil
}

func newAPI(r reviewer, now func() time.Time) *API {
	return &API{r, cache.NewLRUExpireCacheWithClock(maxAnswers, clock(now))}
}

type clock func() time.Time

func (c clock) Now() time.Time { return c() }

// Permit returns nil where the request may read its path.
func (a *API) Permit(r *http.Request) error {
	token := web.Bearer(r)
	if token == "" || len(token) > maxToken {
		return web.ErrUnauthorized()
	}
	k := key{sha256.Sum256([]byte(token)), r.URL.Path}
	if known, ok := a.answers.Get(k); ok {
		err, _ := known.(error)
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), askTimeout)
	defer cancel()
	final, err := a.ask(ctx, token, r.URL.Path)
	switch {
	case final && err == nil:
		a.answers.Add(k, nil, allowedFor)
	case final:
		a.answers.Add(k, err, deniedFor)
	}
	return err
}

// ask asks the API server; final says that it answered.
func (a *API) ask(ctx context.Context, token, path string) (final bool, err error) {
	t := &authentication.TokenReview{Spec: authentication.TokenReviewSpec{Token: token}}
	if err := a.reviewer.Token(ctx, t); err != nil {
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
	s := &authorization.SubjectAccessReview{Spec: authorization.SubjectAccessReviewSpec{User: user.Username, UID: user.UID, Groups: user.Groups,
		Extra: extra, NonResourceAttributes: &authorization.NonResourceAttributes{Path: path, Verb: "get"}}}
	if err := a.reviewer.Access(ctx, s); err != nil {
		return false, unknown(err)
	}
	if !s.Status.Allowed {
		return true, web.ErrForbidden(user.Username, path)
	}
	return true, nil
}

// unknown says that the API server did not answer. What it said may name things of the cluster, and is not passed on.
func unknown(error) error {
	return &web.Error{Msg: "the API server did not say who asks", Code: http.StatusServiceUnavailable,
		Advice: "the ServiceAccount of plimsoll serve needs create on tokenreviews and subjectaccessreviews (system:auth-delegator)"}
}

// client is an API server over the network. The clientset would bring the types of every API group into memory.
type client struct{ token, access *rest.RESTClient }

func (c client) Token(ctx context.Context, t *authentication.TokenReview) error {
	return c.token.Post().Resource("tokenreviews").Body(t).Do(ctx).Into(t)
}

func (c client) Access(ctx context.Context, s *authorization.SubjectAccessReview) error {
	return c.access.Post().Resource("subjectaccessreviews").Body(s).Do(ctx).Into(s)
}
