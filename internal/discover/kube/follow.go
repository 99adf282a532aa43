package kube

import (
	"context"
	"path"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Reflectors retry after one second, and at least every five: client-go's own thirty would keep a node without its
// configuration long after the API server is back. The jitter keeps nodes apart.
const (
	retryFirst = 800 * time.Millisecond
	retryMost  = 5 * time.Second
)

// query is what one reflector lists and watches.
type query struct {
	resource  Resource
	namespace string
	name      string // of the object; of pods, that of the node
}

// field is the selector that has the API server send nothing else. Pods that are over have no groups. No quota counts
// them, and a tenant can have thousands on a node, of which each would be kept with its annotations.
func (q query) field() string {
	if q.resource == Pods {
		return fields.AndSelectors(fields.OneTermEqualSelector("spec.nodeName", q.name),
			fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
			fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed))).String()
	}
	return fields.OneTermEqualSelector("metadata.name", q.name).String()
}

func (q query) String() string { return string(q.resource) + " " + path.Join(q.namespace, q.name) }

// store passes a reflector's objects to the Discoverer, trimmed, and keeps nothing else of them. The reflector itself
// trims no more than the list that a watch begins with (client-go, Reflector.watchList).
type store struct {
	put     func(object any)
	drop    func(object any)
	replace func(objects []any)
}

func (s store) Add(o any) error                { s.put(trimmed(o)); return nil }
func (s store) Update(o any) error             { s.put(trimmed(o)); return nil }
func (s store) Delete(o any) error             { s.drop(o); return nil }
func (store) Resync() error                    { return nil }
func (store) Transformer() cache.TransformFunc { return trim }

func (s store) Replace(list []any, _ string) error {
	for i, o := range list {
		list[i] = trimmed(o)
	}
	s.replace(list)
	return nil
}

var _ cache.TransformingStore = store{}

// follow keeps the store up to date until the context ends.
func follow(ctx context.Context, api API, q query, to store, line *line) {
	object, _ := q.resource.empty()
	only := func(o *metav1.ListOptions) { o.FieldSelector = q.field() }
	asks := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			only(&o)
			list, err := api.List(ctx, q.resource, q.namespace, o)
			line.answered(q, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			only(&o)
			w, err := api.Watch(ctx, q.resource, q.namespace, o)
			fault := err
			if o.SendInitialEvents != nil && apierrors.IsInvalid(err) {
				fault = nil // an answer, of a server that streams no lists: the reflector lists instead
			}
			line.answered(q, fault)
			return w, err
		},
	}
	silent := logr.Discard() // the line logs a failure once
	r := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(asks, api), object, to,
		cache.ReflectorOptions{
			Logger: &silent, Name: "plimsoll " + q.String(),
			Backoff: &wait.Backoff{Duration: retryFirst, Cap: retryMost, Steps: 1 << 30, Factor: 2, Jitter: 0.5},
		})
	r.RunWithContext(klog.NewContext(ctx, silent))
}
