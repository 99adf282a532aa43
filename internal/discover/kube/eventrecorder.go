package kube

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"plimsoll/internal/printable"
	"plimsoll/internal/ratelimit"
)

// Object is one that an Event is about.
type Object struct{ Kind, Namespace, Name, UID string }

const (
	maxMessage = 1024 // the API server refuses more (k8s.io/kubernetes/pkg/apis/core/validation, validateEvent)
	maxWaiting = 200  // Events that wait for an API server that is away
	maxSaid    = 4096 // names of Events that are remembered

	retryEvents   = 30 * time.Second // sooner when the API server is back
	reportDropped = 5 * time.Minute
)

// eventsEach is how many Events one object gets, and eventsAll how many a node makes. Both are far below what a kubelet
// makes (50 a second; client-go's recorder: 25 an object, and one in 5 minutes).
func eventsEach() ratelimit.Rate { return ratelimit.Rate{Burst: 10, Every: 5 * time.Minute} }
func eventsAll() ratelimit.Rate  { return ratelimit.Rate{Burst: 50, Every: time.Second} }

// eventRecorder reports faults of an object to people, by Events on that object: each fault once. The name of an Event
// is derived from its text. So many nodes, or a restarted agent, make it once: the API server refuses a second Event of
// the same name. An object has a rate of its own, and all Events of a node have one: further Events of an object are
// left out, and Events of further objects wait.
type eventRecorder struct {
	api  API
	node string
	log  *slog.Logger
	now  func() time.Time
	wake chan struct{}

	mu      sync.Mutex
	said    map[string]bool // by name
	waiting []*corev1.Event
	objects *ratelimit.Objects
	left    map[string]bool // names of Events that were left out, so that each counts once
	dropped int64           // since the start
	unsaid  int64           // of these, those that the log does not have yet
}

func newEventRecorder(o Options) *eventRecorder {
	return &eventRecorder{api: o.API, node: o.Node, log: o.Log, now: o.Now, wake: make(chan struct{}, 1),
		said: map[string]bool{}, left: map[string]bool{}, objects: ratelimit.NewObjects(eventsEach(), nil)}
}

// warn queues an Event on an object, unless the same Event was queued before. It never blocks.
func (h *eventRecorder) warn(about Object, reason, message string) {
	e := h.event(about, reason, message)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.said[e.Name] {
		return
	}
	if len(h.waiting) >= maxWaiting || !h.objects.Allow(h.now(), about.Kind+" "+about.UID) {
		h.leave(e.Name)
		return
	}
	remember(h.said, e.Name) // the API server refuses those that exist
	h.waiting = append(h.waiting, e)
	h.again()
}

// leave counts an Event that is left out. A fault that lasts is reported again, and may be said then.
func (h *eventRecorder) leave(name string) {
	if !h.left[name] {
		remember(h.left, name)
		h.dropped++
		h.unsaid++
	}
}

// remember adds a name to a bounded set.
func remember(set map[string]bool, name string) {
	if len(set) >= maxSaid {
		clear(set)
	}
	set[name] = true
}

// droppedTotal is the number of Events that were left out.
func (h *eventRecorder) droppedTotal() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dropped
}

// sayDropped logs what was left out since it was called last.
func (h *eventRecorder) sayDropped() {
	h.mu.Lock()
	n := h.unsaid
	h.unsaid = 0
	h.mu.Unlock()
	if n > 0 {
		h.log.Warn("Events were left out: there were too many", "events", n, "hint",
			"`plimsoll status --json` lists what is rejected")
	}
}

// again has what waits tried again.
func (h *eventRecorder) again() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

func (h *eventRecorder) event(about Object, reason, message string) *corev1.Event {
	message = printable.Excerpt(message, maxMessage)
	sum := sha256.Sum256([]byte(strings.Join([]string{about.Kind, about.UID, reason, message}, "\x00")))
	namespace := about.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	now := metav1.NewTime(h.now())
	const component = "plimsoll"
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("plimsoll.%x", sum[:10])},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: about.Kind, Namespace: about.Namespace,
			Name: about.Name, UID: types.UID(about.UID)},
		Type: corev1.EventTypeWarning, Reason: reason, Message: message, FirstTimestamp: now,
		LastTimestamp: now, Count: 1,
		Source: corev1.EventSource{Component: component, Host: h.node}, ReportingController: component,
		ReportingInstance: h.node,
	}
}

// run makes the Events until the context ends. One that the API server refuses for good is logged and dropped.
func (h *eventRecorder) run(ctx context.Context) {
	again, report := time.NewTicker(retryEvents), time.NewTicker(reportDropped)
	defer again.Stop()
	defer report.Stop()
	all := eventsAll().Bucket()
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.wake:
		case <-again.C:
		case <-report.C:
			h.sayDropped()
		}
		for e := h.next(); e != nil && all.Wait(ctx) == nil && h.make(ctx, e); e = h.next() {
			h.done(e)
		}
	}
}

// make makes an Event; false when it must be retried.
func (h *eventRecorder) make(ctx context.Context, e *corev1.Event) bool {
	err := h.api.CreateEvent(ctx, e)
	switch {
	case err == nil || apierrors.IsAlreadyExists(err):
		return true
	case passes(err):
		return false
	}
	h.log.Warn("make an Event", "object", e.InvolvedObject.Kind+" "+e.Namespace+"/"+e.InvolvedObject.Name, "error", err)
	return true
}

// passes says whether a fault may pass without a change of the Event. One that the API server refuses for good would be
// in the way of all others.
func passes(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return true
	}
	code := answer.Status().Code
	return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests ||
		code == http.StatusUnauthorized // the token is renewed
}

func (h *eventRecorder) next() *corev1.Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.waiting) == 0 {
		return nil
	}
	return h.waiting[0]
}

func (h *eventRecorder) done(e *corev1.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.waiting) > 0 && h.waiting[0] == e {
		h.waiting = h.waiting[1:]
	}
}
