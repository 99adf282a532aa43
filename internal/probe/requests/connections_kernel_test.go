package requests

import (
	"testing"
	"time"
)

// TestConnectionsAreBounded: of more connections than there is room for some are not traced, and are counted. Once the
// others are closed, new ones are traced again.
func TestConnectionsAreBounded(t *testing.T) {
	const bound, many, most = 256, 600, 320 // some more, made during a count
	w := newWorld(t, Options{Connections: bound})
	w.start()
	w.addr = serveIn(t, w.group.Child("inner"), "server")
	earlier, clients := w.read(), []*client{}
	for range many {
		clients = append(clients, w.connect())
	}
	for _, c := range clients {
		c.ask(order{sends: 1})
	}
	time.Sleep(2 * countEvery) // a count finds no room
	if n := w.traced(); n < 10 || n > most || w.r.Untraced() < many-most {
		t.Errorf("of %d connections and others %d are traced, and %d are not; want %d at most", many, n,
			w.r.Untraced(), most)
	}
	total := w.read()
	if got := total.Since(&earlier); got.Requests+got.Overtaken > most {
		t.Errorf("%d requests of %d traced connections", got.Requests, most)
	}
	for _, c := range clients {
		_ = c.conn.Close()
	}
	soon(t, "seen to close", func() bool { return w.traced() < bound/2 })
	earlier = w.read()
	soon(t, "traced again", func() bool {
		c := w.connect()
		c.ask(order{sends: 1})
		time.Sleep(behind)
		_ = c.conn.Close()
		total := w.read()
		return total.Since(&earlier).Requests > 0
	})
}

func (w *world) traced() int64 {
	w.t.Helper()
	n, err := w.r.traced()
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}
