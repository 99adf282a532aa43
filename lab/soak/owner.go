package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path"
	"sync"
	"syscall"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/experiment"
	"plimsoll/lab/kubeapi"
)

// owner makes the pods and writes their limits, as a user, a kubelet and a runtime do together.
type owner struct {
	groups *experiment.Groups
	files  files
	api    *kubeapi.Server
	rng    *rand.Rand
	cpus   cpu.Set // where idle containers run

	mu     sync.Mutex
	pods   []*pod
	serial int
	poked  int // pods, so far
	counts counts
}

// counts are what the owner has done.
type counts struct {
	Started  int64         `json:"groups_started"` // of containers and pods
	Jobs     int64         `json:"jobs"`
	Resizes  int64         `json:"resizes"`
	AtRaise  int64         `json:"resizes_at_a_raise"` // the file held a quota of the agent's when the spec changed
	Refused  int64         `json:"refused_writes"`     // by the kernel (EINVAL), and tried again
	Restarts int64         `json:"container_restarts"`
	Replaced int64         `json:"pods_replaced"`
	Longest  time.Duration `json:"longest_resize_ns"` // from the spec to the files
}

const (
	podParent = "kubepods/burstable" // as the kubelet names it
	template  = "template"           // a group that no agent manages
)

// fill makes the parents and so many pods.
func (o *owner) fill(ctx context.Context, containers int) error {
	for _, name := range []string{path.Dir(podParent), podParent} {
		if _, err := o.groups.AddParent(name); err != nil {
			return err
		}
	}
	if _, err := o.groups.Add(template); err != nil {
		return err
	}
	for i := 0; i*podSize < containers; i++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := o.addPod(min(containers-i*podSize, podSize), i%busyPods == 0); err != nil {
			return err
		}
	}
	return nil
}

// A pod has so many containers. The first one of each fifth pod is busy: one container in ten.
const (
	podSize  = 2
	busyPods = 5
)

// addPod has a pod bound to the node, and starts its containers.
func (o *owner) addPod(containers int, busy bool) error {
	o.serial++
	p := &pod{name: fmt.Sprintf("p%d", o.serial), uid: fmt.Sprintf("5041c000-0000-4000-8000-%012x", o.serial)}
	for i := range containers {
		p.containers = append(p.containers, &container{name: fmt.Sprintf("c%d", i), spec: o.anyLimit(0),
			busy: busy && i == 0})
	}
	o.api.Put(p.listed())
	var err error
	if p.group, err = o.groups.AddParent(path.Join(podParent, "pod"+p.uid)); err != nil {
		return err
	}
	if err := o.files.limit(p.group, p.limit().quota()); err != nil {
		return err
	}
	p.written = p.limit()
	o.counts.Started++
	o.pods = append(o.pods, p)
	for _, c := range p.containers {
		if err := o.startContainer(p, c); err != nil {
			return err
		}
	}
	o.confirm(p)
	return nil
}

// anyLimit is a limit other than this one.
func (o *owner) anyLimit(but milli) milli {
	for {
		if m := leastLimit + milli(o.rng.IntN(int(mostLimit-leastLimit+1))); m != but {
			return m
		}
	}
}

func (o *owner) startContainer(p *pod, c *container) (err error) {
	o.serial++
	c.id = fmt.Sprintf("%064x", o.serial)
	if c.group, err = o.groups.Add(path.Join(podParent, "pod"+p.uid, c.id)); err != nil {
		return err
	}
	if err := o.files.limit(c.group, c.spec.quota()); err != nil {
		return err
	}
	c.written = c.spec
	o.counts.Started++
	at := o.cpus[o.serial%len(o.cpus)]
	c.process, err = experiment.Launch(c.program(), func(pid int) error {
		if err := o.groups.Enter(c.group, pid); err != nil || c.busy {
			return err
		}
		return experiment.Bind(pid, at)
	})
	return err
}

// program does nothing with the lines that it reads, until its standard input ends. It stays on one CPU, so that
// what is kept of the group for each CPU does not grow with its age. That of a busy container does a job for each
// line: so many rounds.
func (c *container) program() *exec.Cmd {
	if !c.busy {
		return exec.Command("cat")
	}
	return exec.Command("/bin/sh", "-c",
		`read -r go; while read -r n; do i=0; while [ $i -lt $n ]; do i=$((i+1)); done; done`)
}

// rounds of the shell's loop take about 20 ms of CPU time: ten times what most of the limits allow in a period.
const rounds = "10000"

func (o *owner) stopContainer(c *container) error {
	return errors.Join(c.process.Stop(0), o.groups.Remove(c.group))
}

// confirm has the status say that all containers run with the limits of the spec.
func (o *owner) confirm(p *pod) {
	for _, c := range p.containers {
		c.confirmed, c.settled = c.spec, time.Now()
	}
	o.api.Put(p.listed())
}

// retry is when a refused write is tried again.
const retry = 100 * time.Millisecond

// carryOut writes the limits of the resizes that are due: parents first where the limit grows, and last where it
// falls. The kernel refuses a quota below the burst, and on v1 one of a pod below that of a container: then the
// kubelet tries again.
func (o *owner) carryOut(now time.Time) error {
	for _, p := range o.pods {
		if !p.resizes() || now.Before(p.due) {
			continue
		}
		done, err := o.write(p)
		switch {
		case errors.Is(err, syscall.EINVAL):
			o.counts.Refused++
			p.due = now.Add(retry)
		case err != nil:
			return err
		case done:
			o.counts.Resizes++
			o.counts.Longest = max(o.counts.Longest, now.Sub(p.asked))
			o.confirm(p)
		}
	}
	return nil
}

func (o *owner) write(p *pod) (done bool, err error) {
	if p.limit() > p.written {
		if err := o.writePod(p); err != nil {
			return false, err
		}
	}
	for _, c := range p.containers {
		if c.spec == c.written {
			continue
		}
		if err := o.files.limit(c.group, c.spec.quota()); err != nil {
			return false, err
		}
		c.written = c.spec
	}
	if p.limit() < p.written {
		if err := o.writePod(p); err != nil {
			return false, err
		}
	}
	return true, nil
}

func (o *owner) writePod(p *pod) error {
	if err := o.files.limit(p.group, p.limit().quota()); err != nil {
		return err
	}
	p.written = p.limit()
	return nil
}

// underWay lists the resizes that are not carried out.
func (o *owner) underWay() (list []string) {
	for _, p := range o.pods {
		if p.resizes() {
			list = append(list, fmt.Sprintf("%s: the kernel refuses the owner's %v of pod %s for more than %v", p.group,
				p.limit().quota(), p.name, settlePatience))
		}
	}
	return list
}

// close ends the processes. The groups are their maker's to remove.
func (o *owner) close() error {
	var errs []error
	for _, p := range o.pods {
		for _, c := range p.containers {
			if c.process != nil {
				errs = append(errs, c.process.Stop(0))
			}
		}
	}
	return errors.Join(errs...)
}
