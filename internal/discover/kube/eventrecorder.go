package kube

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Object is one that an Event is about.
type Object struct{ Kind, Namespace, Name, UID string }

const (
	maxMessage = 1024 // the API server refuses more (k8s.io/kubernetes/pkg/apis/core/validation, validateEvent)
	maxWaiting = 200  // Events that wait for an API server that is away
	maxSaid    = 4096 // names of Events that are remembered

	retryEvents = 30 * time.Second // sooner when the API server is back
)

// eventRecorder reports faults of an object to people, by Events on that object: each fault once. The name of an Event
// is derived from its text. So many nodes, or a restarted agent, make it once: the API server refuses a second Event of
// the same name.
type eventRecorder struct {
	api  API
	node string
	log  *slog.Logger
	now  func() time.Time
	wake chan struct{}

	mu      sync.Mutex
	said    map[string]bool
	waiting []*corev1.Event
}

func newEventRecorder(o Options) *eventRecorder {
	return &eventRecorder{api: o.API, node: o.Node, log: o.Log, now: o.Now, wake: make(chan struct{}, 1), said: map[string]bool{}}
}

// warn queues an Event on an object, unless the same Event was queued before. It never blocks.
func (h *eventRecorder) warn(about Object, reason, message string) {
	e := h.event(about, reason, message)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.said[e.Name] || len(h.waiting) >= maxWaiting {
		return
	}
	if len(h.said) >= maxSaid {
		clear(h.said) // the API server refuses those that exist
	}
	h.said[e.Name] = true
	h.waiting = append(h.waiting, e)
	h.again()
}

// again has what waits tried again.
func (h *eventRecorder) again() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

func (h *eventRecorder) event(about Object, reason, message string) *corev1.Event {
	sum := sha256.Sum256([]byte(strings.Join([]string{about.Kind, about.UID, reason, message}, "\x00")))
	namespace := about.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage-3], "") + "..."
	}
	now := metav1.NewTime(h.now())
	const component = "plimsoll"
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("plimsoll.%x", sum[:10])},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: about.Kind, Namespace: about.Namespace, Name: about.Name, UID: types.UID(about.UID)},
		Type:           corev1.EventTypeWarning, Reason: reason, Message: message, FirstTimestamp: now, LastTimestamp: now, Count: 1,
		Source: corev1.EventSource{Component: component, Host: h.node}, ReportingController: component, ReportingInstance: h.node,
	}
}

// run makes the Events until the context ends. One that the API server refuses for good is logged and dropped.
func (h *eventRecorder) run(ctx context.Context) {
	again := time.NewTicker(retryEvents)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.wake:
		case <-again.C:
		}
		for e := h.next(); e != nil && h.make(ctx, e); e = h.next() {
			h.done(e)
		}
	}
}

// make makes an Event; false when it must be retried.
func (h *eventRecorder) make(ctx context.Context, e *corev1.Event) bool {
	err := h.api.CreateEvent(ctx, e)
	switch {
	case err == nil || errors.IsAlreadyExists(err):
		return true
	case errors.ReasonForError(err) == metav1.StatusReasonUnknown, errors.IsTooManyRequests(err), errors.IsServerTimeout(err), errors.IsInternalError(err):
		return false
	}
	h.log.Warn("make an Event", "about", e.InvolvedObject.Kind+" "+e.Namespace+"/"+e.InvolvedObject.Name, "error", err)
	return true
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
