package main

import (
	"log/slog"
	"testing"

	"plimsoll/internal/agent"
)

// TestNRIIsWanted: with Kubernetes, or where the socket is named.
func TestNRIIsWanted(t *testing.T) {
	for _, c := range []struct {
		args []string
		want bool
	}{
		{nil, false},
		{[]string{"--kube"}, true},
		{[]string{"--kube", "--nri-socket="}, false},
		{[]string{"--nri-socket=/x"}, true},
	} {
		f := kubeFlagsOf(t, c.args...)
		p := f.nri.open(f.on, &agent.Agent{}, slog.New(slog.DiscardHandler))
		if (p != nil) != c.want || (nriStatus(p) != nil) != c.want {
			t.Errorf("%q: %v", c.args, p)
		}
	}
}
