package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/experiment"
	"plimsoll/internal/probe"
	"plimsoll/internal/strategy"
	"plimsoll/internal/sysfs"
	"plimsoll/lab/frame"
)

// bench is a measurement under way.
type bench struct {
	*frame.Bench
	*settings
	jobs *frame.Jobs
	pods []pod
	dir  string // for sockets and mounts
}

// pod is an idle one, with the names that a kubelet with the systemd driver and containerd give.
type pod struct {
	uid, container string // ids
	group, inner   string // control groups
}

// podQuota is the limit of a pod and of its container.
const podQuota = 50 * time.Millisecond

// Measure makes the node and runs the conditions.
func (s *settings) Measure(ctx context.Context, f *frame.Bench) (r *result, err error) {
	b := &bench{Bench: f, settings: s}
	weight := experiment.WeightOf(f.Tree().Version(), float64(runtime.NumCPU()))
	if err := f.Tree().SetWeight(f.Base(), weight); err != nil {
		return nil, err
	}
	if err := b.makeNode(ctx); err != nil {
		return nil, err
	}
	f.Undo(b.jobs.Stop)
	frame.Check(b.jobs.Prepare(s.Job)())
	r = &result{settings: s, Machine: f.Machine(), Seconds: s.span.Seconds()}
	for _, c := range conditions() {
		if len(s.only) > 0 && !slices.Contains(s.only, c.name) {
			continue
		}
		row, err := b.run(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("condition %s: %w", c.name, err)
		}
		f.Say("%s", row.line())
		r.Rows = append(r.Rows, row)
	}
	return r, nil
}

// makeNode makes the victims and the idle pods.
func (b *bench) makeNode(ctx context.Context) (err error) {
	b.dir = b.Dir("hostile")
	b.Say("making %d victims and %d idle pods", b.Victims, b.Pods)
	b.jobs = frame.NewJobs(b.Bench.Groups, b.Victims, b.Job.Quota)
	for i := range b.Pods {
		if err := b.addPod(i); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

func (b *bench) addPod(i int) error {
	p, err := b.makePod(i)
	if err != nil {
		return err
	}
	for _, group := range []string{p.inner, p.group} {
		if err := b.Limit(group, cpu.Bandwidth{Quota: podQuota}); err != nil {
			return err
		}
	}
	b.pods = append(b.pods, p)
	b.Sleeper(p.inner)
	return nil
}

// makePod makes the groups of a pod and its container, without limits. Pods differ by their numbers.
func (b *bench) makePod(i int) (p pod, err error) {
	p = pod{uid: fmt.Sprintf("00000000-0000-4000-8000-%012x", i), container: fmt.Sprintf("%064x", i)}
	slice := "kubepods-pod" + strings.ReplaceAll(p.uid, "-", "_") + ".slice"
	if p.group, err = b.AddParent(slice); err != nil {
		return p, err
	}
	p.inner, err = b.Add(slice + "/cri-containerd-" + p.container + ".scope")
	return p, err
}

// capPercent is what a victim may use in a period, in percent of its limit. By default it is 300, and half of the
// throttles are at the cap.
const capPercent = 800

// config is a configuration of the agent: policy auto for the victims, one of the pods, and more sections and
// overrides. The threshold is the whole machine, so that the load of the bench itself takes no refill away.
func (b *bench) config(pods strategy.Policy, sections, overrides string) string {
	base := b.Base()
	return fmt.Sprintf("strategy: {policy: none, sharePoolThresholdPercent: 100}\n%soverrides:\n  - {cgroup: %q, "+
		"policy: auto, cfsQuotaBurstPercent: %d}\n  - {cgroup: %q, policy: %s}\n  - {cgroup: %q, policy: %s}\n%s",
		sections, base+"/job*", capPercent, base+"/kubepods-*", pods, base+"/kubepods-*/*", pods, overrides)
}

// run measures one condition: an agent in quiet, and the same agent beside the hostility.
func (b *bench) run(ctx context.Context, c condition) (r row, err error) {
	r = row{Condition: c.name, What: c.what}
	b.Say("%s: %s", c.name, c.what)
	setup := experiment.Setup{Binary: b.settings.Plimsoll, Root: b.settings.Root}
	if err := c.prepare(ctx, b, &setup); err != nil {
		return r, errors.Join(err, c.end())
	}
	a, err := experiment.StartAgent(setup, b.Bench.Groups)
	if err != nil {
		return r, errors.Join(err, c.end())
	}
	defer func() {
		err = errors.Join(err, c.end())
		// Where it had to be killed, what the condition came to is known all the same.
		if stopped := a.Stop(); stopped != nil {
			r.Fault = stopped.Error()
		}
	}()
	if err := b.settle(ctx, a, c); err != nil {
		return r, err
	}
	m, err := b.listen()
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	if r.Quiet, err = m.window(ctx, a); err != nil {
		return r, err
	}
	if err := c.begin(ctx, b, a); err != nil {
		return r, err
	}
	r.Hostile, err = m.window(ctx, a)
	return r, err
}

// settle waits until the agent looks after all groups, and has set up the victims.
func (b *bench) settle(ctx context.Context, a *experiment.Agent, c condition) error {
	err := a.Follow(ctx, c.configure(b, false), func() error {
		if missing := b.burst(); missing != nil {
			return missing
		}
		if err := experiment.Pause(ctx, statusGap); err != nil { // thousands of groups take an agent a while
			return err
		}
		s, err := a.Status(ctx)
		if err != nil {
			return err
		}
		if !s.Events.Subscribed {
			return fmt.Errorf("there are no throttle events: %s", s.Events.Why)
		}
		known := map[string]bool{}
		for _, g := range s.Containers {
			known[g.Cgroup] = true
		}
		for _, p := range b.pods {
			if !known[p.group] || !known[p.inner] {
				return fmt.Errorf("%s is not looked after", p.group)
			}
		}
		return nil
	})
	if err != nil {
		return errors.Join(err, b.jobs.Working(), b.explain(ctx, a))
	}
	return experiment.Pause(ctx, b.warmUp)
}

// explain is what the agent says of victims without a burst.
func (b *bench) explain(ctx context.Context, a *experiment.Agent) (said error) {
	s, err := a.Status(ctx)
	if err != nil {
		return err
	}
	for _, g := range s.Containers {
		if g.Burst.InForce == 0 && slices.Contains(b.jobs.Paths, g.Cgroup) {
			said = errors.Join(said, fmt.Errorf("the agent on %s: %s; burst %+v, quota %+v", g.Cgroup, g.Why, g.Burst,
				g.Quota))
		}
	}
	return said
}

// statusGap is how often the status is read while the agent settles.
const statusGap = time.Second

// burst is an error as long as a victim has no burst, and no more than its limit. One whose jobs waited for each other
// while no agent ran is raised, which leaves its burst no room.
func (b *bench) burst() error {
	for _, group := range b.jobs.Paths {
		burst, err := b.Tree().Burst(group)
		now, failed := b.Tree().Bandwidth(group)
		if err := errors.Join(err, failed); err != nil || burst == 0 && now.Quota <= b.Job.Quota {
			return errors.Join(fmt.Errorf("%s has no burst yet", group), err)
		}
	}
	return nil
}

// meter measures the victims of one agent.
type meter struct {
	*bench
	probe  *probe.Probe
	watch  *watch
	stalls *stalls
}

func (b *bench) listen() (*meter, error) {
	p, err := frame.Listen(b.jobs.Inodes)
	if err != nil {
		return nil, err
	}
	w, err := watchWrites(b.settings.Root, b.jobs)
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	cpus, err := sysfs.NewHost("/").Online()
	if err != nil {
		return nil, errors.Join(err, p.Close(), w.close())
	}
	return &meter{b, p, w, watchStalls(cpus)}, nil
}

func (m *meter) close() error {
	m.stalls.close()
	return errors.Join(m.probe.Close(), m.watch.close())
}

// after is how long after a window the throttles last that began in it: a period, and a moment.
const after = 150 * time.Millisecond

// window measures from now on.
func (m *meter) window(ctx context.Context, a *experiment.Agent) (o outcome, err error) {
	if err := a.Child().ForgetPeak(); err != nil {
		return o, err
	}
	refused, err := refusals(ctx, a)
	if err != nil {
		return o, err
	}
	host := sysfs.NewHost("/")
	before, err := host.Stolen()
	if err != nil {
		return o, err
	}
	if _, err := m.stalls.collect(); err != nil {
		return o, err
	}
	from := probe.Monotonic()
	if err := experiment.Pause(ctx, m.span); err != nil {
		return o, err
	}
	to := probe.Monotonic()
	stolen, err := host.Stolen()
	if err != nil {
		return o, err
	}
	if err := experiment.Pause(ctx, after); err != nil {
		return o, err
	}
	writes, err := m.watch.collect()
	if err != nil {
		return o, err
	}
	events, err := frame.Collect(m.probe, to+after)
	if err != nil {
		return o, fmt.Errorf("read the throttles of the window: %w", err)
	}
	stood, err := m.stalls.collect()
	if err != nil {
		return o, err
	}
	o = summarize(throttlesOf(events, writes, cpu.Percent(m.Job.Quota, capPercent), from, to))
	for i := range o.Missed {
		one := &o.Missed[i]
		one.Group = m.jobs.Paths[slices.Index(m.jobs.Inodes, one.inode)]
		one.Stall = during(stood, from+one.After, from+one.After+one.Length)
	}
	o.Stalls, o.Longest = len(stood), longest(stood)
	if o.Refused, err = refusals(ctx, a); err != nil {
		return o, errors.Join(a.Child().Ended(), err)
	}
	for kind, n := range refused {
		o.Refused[kind] -= n
	}
	maps.DeleteFunc(o.Refused, func(_ string, n int64) bool { return n == 0 })
	o.Stolen = experiment.Ratio(stolen-before, time.Duration(m.Machine().CPUs)*(to-from))
	if o.Memory, err = a.Child().Memory("VmHWM:"); err != nil {
		return o, errors.Join(a.Child().Ended(), err)
	}
	return o, m.jobs.Working()
}

// refusals counts the throttles that the agent did not end, by its reasons.
func refusals(ctx context.Context, a *experiment.Agent) (map[string]int64, error) {
	s, err := a.Status(ctx)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(s.Writes.Decisions, func(kind string, _ int64) bool { return !strings.HasPrefix(kind, "refused-") })
	return s.Writes.Decisions, nil
}

// place is a path in the bench's own directory.
func (b *bench) place(name string) string { return filepath.Join(b.dir, name) }
