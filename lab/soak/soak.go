package main

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sync/errgroup"

	"plimsoll/internal/experiment"
	"plimsoll/internal/report"
	"plimsoll/lab/frame"
	"plimsoll/lab/kubeapi"
)

// node is the name of this machine at the API server.
const node = "soak"

// soak is a measurement under way.
type soak struct {
	*frame.Bench
	*settings
	owner *owner
	api   *kubeapi.Server
	dir   string
	agent *experiment.Agent

	began    time.Time
	born     time.Time // of the present agent
	ready    time.Time // since when it knows the pods; zero: it does not
	life     int
	maps     map[ebpf.MapID]bool // that an agent had
	suspects map[string]int      // how many samples in a row said of a group that a resize was lost
	silent   int                 // samples in a row that the agent did not answer
	result   *result
}

// Measure implements frame.Experiment.
func (s *settings) Measure(ctx context.Context, f *frame.Bench) (*result, error) {
	k := &soak{Bench: f, settings: s, maps: map[ebpf.MapID]bool{}, suspects: map[string]int{},
		result: &result{Machine: f.Machine(), Containers: s.containers, Seconds: s.span.Seconds(), Seed: s.seed}}
	if err := k.prepare(ctx); err != nil {
		return nil, err
	}
	if err := k.run(ctx); err != nil {
		return nil, err
	}
	k.result.Owner, k.result.Flaps, k.result.Groups = k.owner.counts, k.api.Fails(), len(k.owner.all())
	k.result.Growth = judge(k.result.Samples, k.result.Groups, k.life)
	return k.result, nil
}

func (k *soak) prepare(ctx context.Context) (err error) {
	k.dir = k.Dir("soak")
	if k.api, err = kubeapi.Open(node); err != nil {
		return err
	}
	k.Undo(k.api.Close)
	cpus, err := experiment.Allowed()
	if err != nil {
		return err
	}
	k.owner = &owner{groups: k.Bench.Groups, files: files{k.settings.Root, k.Tree()}, api: k.api, cpus: cpus,
		rng: rand.New(rand.NewPCG(k.seed, 0))}
	k.Undo(k.owner.close)
	k.Say("making %d containers", k.containers)
	return k.owner.fill(ctx, k.containers)
}

// run has the owner and the API server do what they do beside one agent after another, and then judges the end.
func (k *soak) run(ctx context.Context) error {
	if err := k.start(); err != nil {
		return err
	}
	k.began = time.Now()
	beside, stop := context.WithCancel(ctx)
	defer stop()
	all, beside := errgroup.WithContext(beside)
	all.Go(func() error { return k.owner.churn(beside, k.churn) })
	all.Go(func() error {
		return k.api.Flap(beside, k.flap, k.flap/4, kubeapi.Away, kubeapi.Refuses, kubeapi.Hangs)
	})
	err := k.lives(beside)
	stop()
	if ended := all.Wait(); ended != nil {
		err = ended // which ended the lives
	}
	if err != nil {
		return err
	}
	return k.end(ctx)
}

// start starts the first agent.
func (k *soak) start() error {
	kubeconfig, err := k.api.Kubeconfig(k.dir)
	if err != nil {
		return err
	}
	k.born = time.Now()
	k.agent = k.Agent(experiment.Setup{Flags: []string{"--kube", "--kubeconfig", kubeconfig, "--node-name", node,
		"--nri-socket", ""}})
	// The pods ask for their policy. The guard must let quotas be raised on a machine that is used by half.
	return k.agent.Configure("strategy: {policy: none, sharePoolThresholdPercent: 100}\n")
}

// lives kills one agent after another. The last one lives longer.
func (k *soak) lives(ctx context.Context) error {
	for end := k.began.Add(k.span - k.last); time.Now().Before(end); {
		if err := k.live(ctx, k.born.Add(k.kill)); err != nil {
			return err
		}
		if err := k.agent.Kill(); err != nil {
			return err
		}
		k.result.Kills++
		k.life++
		k.born, k.ready = time.Now(), time.Time{}
		if err := k.agent.Restart(); err != nil {
			return err
		}
		k.result.Restarts = append(k.result.Restarts, time.Since(k.born))
	}
	return k.live(ctx, k.began.Add(k.span))
}

// live takes samples of the agent until a time.
func (k *soak) live(ctx context.Context, until time.Time) error {
	tick := time.NewTicker(k.every)
	defer tick.Stop()
	for time.Now().Before(until) {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		if err := k.sample(ctx); err != nil {
			return err
		}
	}
	k.Say("%4.0f s, agent %d: %s", time.Since(k.began).Seconds(), k.life, k.result.latest(k.life))
	return nil
}

// maxSilent is how many samples in a row an agent may not answer, on a machine that is busy with other things.
const maxSilent = 3

// sample takes one of the agent. There is none where it does not answer in time, and before it knows the pods: then
// it manages nothing.
func (k *soak) sample(ctx context.Context) error {
	status, err := k.agent.Status(ctx)
	if err != nil {
		if k.silent++; k.silent < maxSilent && k.agent.Child().Ended() == nil && ctx.Err() == nil {
			k.result.Silent++
			return nil
		}
		return err
	}
	k.silent = 0
	if k.ready.IsZero() {
		if status.Kubernetes == nil || !status.Kubernetes.Ready {
			return nil
		}
		k.ready = time.Now()
	}
	x := sample{At: time.Since(k.began), Life: k.life, Age: time.Since(k.ready), Steady: k.answers(settling),
		Goroutines: int64(status.Self.Goroutines)}
	h, err := holdsOf(k.agent.Child().PID(), k.settings.Root)
	if err != nil {
		return errors.Join(k.agent.Child().Ended(), err)
	}
	x.RSS, x.Threads, x.Files, x.Open, x.Watches = h.rss, h.threads, h.files, h.open, h.watches
	maps.Copy(k.maps, h.maps)
	if x.Entries, err = entries(h.maps); err != nil {
		return err
	}
	if x.Journal, err = size(k.agent.StateDir()); err != nil {
		return err
	}
	k.owner.mu.Lock()
	x.Started = k.owner.counts.Started
	k.owner.mu.Unlock()
	k.result.Samples = append(k.result.Samples, x)
	k.watch(status, time.Now())
	return nil
}

// settling is how long an agent may take to learn of the pods after an outage: a reflector asks again after five
// seconds at most, and half as much again (discover/kube, retryMost).
const settling = 8 * time.Second

// answers says whether the API server has been answering for so long.
func (k *soak) answers(long time.Duration) bool {
	since := k.api.AnswersSince()
	return !since.IsZero() && time.Since(since) >= long
}

// watch looks for lost resizes. One sample alone may have met a turn in its middle.
func (k *soak) watch(s report.Status, now time.Time) {
	k.result.count(k.life, s)
	if !k.answers(patience) || now.Sub(k.ready) < patience {
		return
	}
	lost := lostLimits(s, k.owner.all(), now.Add(-patience))
	k.suspects = suspect(k.suspects, lost)
	for _, what := range confirmed(k.suspects, lost) {
		k.result.Lost = append(k.result.Lost, what)
		k.Say("lost: %s", what)
	}
	k.result.Checks++
}
