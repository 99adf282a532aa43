package tenant

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var near = cmpopts.EquateApprox(0, 1e-9)

// TestSplit: weighted max-min fairness.
func TestSplit(t *testing.T) {
	for _, c := range []struct {
		name   string
		claims []Claim
		free   float64
		want   []float64
	}{
		{"enough for all", []Claim{{Weight: 1, Want: 0.2}, {Weight: 2, Want: 0.3}}, 1, []float64{0.2, 0.3}},
		{"short: by weight", []Claim{{Weight: 1, Want: 9}, {Weight: 2, Want: 9}}, 3, []float64{1, 2}},
		{"a modest one leaves its rest", []Claim{{Weight: 1, Want: 0.1}, {Weight: 1, Want: 9}, {Weight: 2, Want: 9}},
			3.1, []float64{0.1, 1, 2}},
		{"nothing free", []Claim{{Weight: 1, Want: 1}}, 0, []float64{0}},
		{"who wants nothing has no weight", []Claim{{Weight: math.Inf(1)}, {Weight: 1, Want: 9}}, 1, []float64{0, 1}},
		{"no weight, nothing", []Claim{{Weight: 0, Want: 1}, {Weight: 1, Want: 1}}, 1, []float64{0, 1}},
	} {
		if diff := cmp.Diff(c.want, Split(c.claims, c.free), near); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// TestSplitOfFifty: fifty containers that are throttled at once share what is free.
func TestSplitOfFifty(t *testing.T) {
	claims := make([]Claim, 50)
	for i := range claims {
		claims[i] = Claim{Weight: float64(1 + i%3), Want: 1}
	}
	sum := 0.0
	for _, got := range Split(claims, 4) {
		sum += got
	}
	if math.Abs(sum-4) > 1e-9 {
		t.Errorf("granted %v in all of 4 free", sum)
	}
}

// TestTenant: a tenant is a namespace, and where nothing tells of one, a pod.
func TestTenant(t *testing.T) {
	for want, o := range map[string]Owner{"web": {"/pod", "web"}, "/pod": {"/pod", ""}} {
		if got := o.Tenant(); got != want {
			t.Errorf("%+v: %s", o, got)
		}
	}
}
