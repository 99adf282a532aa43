package kube

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func testHerald(s *server, node string) *eventRecorder {
	return newEventRecorder(Options{API: s, Node: node, Log: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return time.Unix(1, 0) }})
}

// pass makes one pass over the queued Events.
func (h *eventRecorder) pass() {
	for e := h.next(); e != nil && h.make(context.Background(), e); e = h.next() {
		h.done(e)
	}
}

var aPod = Object{"Pod", "default", "web", "u1"}

// An Event is made once, though it is queued again, by another node, and by a restarted agent.
func TestEventsAreMadeOnce(t *testing.T) {
	s := newServer()
	var log strings.Builder
	for _, node := range []string{"n1", "n2", "n1"} {
		h := testHerald(s, node)
		h.log = slog.New(slog.NewTextHandler(&log, nil))
		for range 3 {
			h.warn(aPod, reasonInvalid, "bad")
			h.pass()
		}
		h.warn(aPod, reasonForeign, "bad")
		h.warn(Object{"Pod", "default", "web", "u2"}, reasonInvalid, "bad") // another pod of the name
		h.pass()
		if len(h.waiting) != 0 {
			t.Errorf("%d wait", len(h.waiting))
		}
	}
	events, err := s.events("default")
	if err != nil || len(events) != 3 {
		t.Fatalf("%d Events, %v", len(events), err)
	}
	if log.Len() > 0 {
		t.Errorf("logged: %s", log.String())
	}
	e := events[0]
	if o := e.InvolvedObject; e.Type != "Warning" || o.Kind != "Pod" || o.Name != "web" || o.Namespace != "default" ||
		o.UID == "" || o.APIVersion != "v1" ||
		e.Source.Component != "plimsoll" || e.ReportingController != "plimsoll" || e.FirstTimestamp.Unix() != 1 ||
		e.Count != 1 {
		t.Errorf("%+v", e)
	}
	if s.asked["event"] != 9 {
		t.Errorf("%d requests: Events are made again", s.asked["event"])
	}
}

// An Event is retried while the API server is away or busy, and not after a refusal.
func TestEventsWait(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		kept int
	}{
		"away":         {errAway, 1},
		"busy":         {errors.NewTooManyRequests("slowly", 1), 1},
		"broken":       {errors.NewInternalError(errAway), 1},
		"unavailable":  {errors.NewServiceUnavailable("later"), 1},
		"timeout":      {errors.NewTimeoutError("slowly", 1), 1},
		"unauthorized": {errors.NewUnauthorized("the token is old"), 1},
		"no reason":    {&errors.StatusError{ErrStatus: metav1.Status{Code: 418}}, 0},
		"forbidden":    {errors.NewForbidden(schema.GroupResource{Resource: "events"}, "e", errAway), 0},
	} {
		s := newServer()
		h := testHerald(s, "n1")
		s.leave(c.err)
		h.warn(aPod, reasonInvalid, "bad")
		h.pass()
		if len(h.waiting) != c.kept {
			t.Errorf("%s: %d wait, want %d", name, len(h.waiting), c.kept)
		}
	}
}

func TestEventsAreBounded(t *testing.T) {
	h := testHerald(newServer(), "n1")
	for i := range maxWaiting + 5 {
		h.warn(Object{Kind: "Pod", UID: fmt.Sprint(i)}, reasonInvalid, "bad")
	}
	if len(h.waiting) != maxWaiting || h.droppedTotal() != 5 {
		t.Errorf("%d wait, %d dropped", len(h.waiting), h.droppedTotal())
	}
	long := h.event(Object{Kind: "Node", Name: "n1"}, reasonInvalid, strings.Repeat("ü", maxMessage))
	if len(long.Message) > maxMessage || !strings.HasSuffix(long.Message, "ü...") || long.Namespace != "default" {
		t.Errorf("%d bytes, namespace %q", len(long.Message), long.Namespace)
	}
}
