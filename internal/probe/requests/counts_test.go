package requests

import (
	"math/bits"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// classOf is length of bpf/requests.bpf.c.
func classOf(d time.Duration) int {
	if d < 1<<least {
		return 0
	}
	power := bits.Len64(uint64(d)) - 1
	return min((power-least)*classes+int(d>>(power-4))&(classes-1)+1, len(Lengths{})-1)
}

// A length lies in its class, and quantiles are within half a class of the exact ones.
func TestQuantile(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var l Lengths
	var list []time.Duration
	for range 10000 {
		d := time.Duration(float64(time.Millisecond) * (0.1 + r.ExpFloat64()))
		class := classOf(d)
		if d < from(class) || d >= from(class+1) {
			t.Fatalf("%v in a class from %v to %v", d, from(class), from(class+1))
		}
		l[class]++
		list = append(list, d)
	}
	slices.Sort(list)
	for _, q := range []float64{0.5, 0.9, 0.99} {
		got, want := l.Quantile(q), list[int(q*10000)-1]
		if ratio := float64(got) / float64(want); ratio < 0.97 || ratio > 1.03 {
			t.Errorf("quantile %v: %v, want %v", q, got, want)
		}
	}
	if n := l.UpTo(1 << 20); n == 0 || list[n-1] >= 1<<20 || list[n] < 1<<20 {
		t.Errorf("%d up to %v, of which the longest are %v and %v", n, time.Duration(1<<20), list[n-1], list[n])
	}
	if none := (&Lengths{}).Quantile(0.5); none != 0 {
		t.Errorf("of nothing: %v", none)
	}
}

// A response of before the window that has become longer in it is none of the window's.
func TestSinceALengthThatMoved(t *testing.T) {
	was, is, other := classOf(4*time.Millisecond), classOf(9*time.Millisecond), classOf(20*time.Millisecond)
	var earlier, now Counts
	earlier.Requests, earlier.Response[was], earlier.Response[other] = 2, 1, 1
	now.Requests, now.Response[is], now.Response[other] = 12, 1, 11
	for turn := range uint32(2) { // the second time the counter of a class turns over
		earlier.Response[other] -= 7 * turn
		now.Response[other] -= 7 * turn
		got := now.Since(&earlier)
		if got.Requests != 10 || got.Response.N() != 10 || got.Response[other] != 10 {
			t.Errorf("%d requests, %d lengths, %d of them where they belong", got.Requests, got.Response.N(),
				got.Response[other])
		}
	}
}

// More than one doubtful request in a hundred, and more than two, and no figure is shown.
func TestWithheld(t *testing.T) {
	for _, c := range []struct {
		requests, doubtful int64
		want               bool
	}{{0, 0, false}, {0, 3, true}, {58, 2, false}, {97, 3, true}, {1000, 10, false}, {1000, 11, true}} {
		if got := (&Counts{Requests: c.requests, Doubtful: c.doubtful}).Withheld(); got != c.want {
			t.Errorf("%d and %d doubtful: withheld %v", c.requests, c.doubtful, got)
		}
	}
}

// file is a file that notes how much is read from it at once.
type file struct {
	*os.File
	most int
}

func (f *file) Read(p []byte) (int, error) {
	f.most = max(f.most, len(p))
	return f.File.Read(p)
}

// TestDrainPauses: a file is read in pieces, though it could copy itself.
func TestDrainPauses(t *testing.T) {
	name := filepath.Join(t.TempDir(), "sockets")
	if err := os.WriteFile(name, make([]byte, 4*stretch), 0o600); err != nil {
		t.Fatal(err)
	}
	opened, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	f := &file{File: opened}
	if n, err := drain(f); n != 4*stretch || err != nil || f.most != stretch {
		t.Errorf("%d bytes, %v; %d at once", n, err, f.most)
	}
}
