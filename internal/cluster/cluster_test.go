package cluster

import (
	"log/slog"
	"testing"
	"time"

	"plimsoll/internal/config"
	"plimsoll/internal/discover/kube"
	"plimsoll/internal/strategy"
)

// TestTheNewestStrategyStays: the agent has what was learned last, also where something newer than a file is learned
// while the agent takes what that file says. A file that changes nothing is passed on too.
func TestTheNewestStrategyStays(t *testing.T) {
	c := New(kube.Options{Node: "n1", Own: strategy.DefaultNode(), Log: slog.New(slog.DiscardHandler), Now: time.Now})
	file, err := config.Parse("test", []byte("strategy: {sharePoolThresholdPercent: 60}"))
	if err != nil {
		t.Fatal(err)
	}
	newer, learned := strategy.DefaultNode(), make(chan struct{})
	newer.SharePoolThresholdPercent = 70
	calls, has := 0, strategy.Node{}
	agent := func(s strategy.Node) {
		if calls++; calls == 1 {
			go func() {
				defer close(learned)
				c.Discoverer.Configure(newer, config.Tenants{})
			}()
		}
		has = s
	}
	c.changed.Store(&agent)
	c.Configure(nil, file)
	<-learned
	if has != newer {
		t.Errorf("the agent has %+v", has)
	}
	c.Configure(nil, file)
	before := calls
	c.Configure(nil, file)
	if has != file.Node() || calls != before+1 {
		t.Errorf("after %d calls the agent has %+v", calls, has)
	}
}
