package meter

import (
	"context"
	"fmt"
	"time"

	"plimsoll/internal/parallelism/inspect"
	"plimsoll/internal/report"
)

// lookEvery is how often new groups are searched for.
const lookEvery = time.Second

// Window measures once. It ends early, with the measurement so far, when the context does.
func (m *Meter) Window(ctx context.Context, length time.Duration) (report.Diagnosis, error) {
	before, err := m.overhead()
	if err != nil {
		return report.Diagnosis{}, err
	}
	if err := m.start(); err != nil {
		return report.Diagnosis{}, err
	}
	if err := m.watch(ctx, time.Now(), length); err != nil {
		return report.Diagnosis{}, err
	}
	elapsed := length
	if len(m.subjects) > 0 {
		elapsed = m.subjects[0].account.Split().Elapsed // all are read together
	}
	after, err := m.overhead()
	if err != nil {
		return report.Diagnosis{}, err
	}
	d := report.Diagnosis{Schema: report.DiagnosisSchema, Elapsed: elapsed, CPUs: len(m.online), Notes: m.notes(),
		Overhead: spent(after, before, elapsed, len(m.online))}
	d.Containers, err = m.describe()
	m.judgeRuntimes(ctx, d.Containers)
	return d, err
}

// judgeRuntimes adds to the containers whether their runtimes can use a burst, as far as there is time.
func (m *Meter) judgeRuntimes(ctx context.Context, list []report.Diagnosed) {
	// Ctrl-C ends the measurement alone
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), inspect.NodeTime)
	defer cancel()
	r := inspect.Runtimes{Tree: m.tree, Online: m.online, Reader: inspect.New("/proc")}
	for i := range list[:min(len(list), inspect.Most)] {
		for _, s := range m.subjects {
			if s.container.Cgroup == list[i].Cgroup && ctx.Err() == nil {
				list[i].Parallelism = r.Of(ctx, s.container)
			}
		}
	}
}

// watch reads slice by slice.
func (m *Meter) watch(ctx context.Context, begin time.Time, length time.Duration) error {
	tick := time.NewTicker(Slice)
	defer tick.Stop()
	for looked := begin; time.Since(begin) < length; {
		select {
		case <-ctx.Done():
			return m.add()
		case <-tick.C:
		}
		if err := m.add(); err != nil {
			return err
		}
		if time.Since(looked) >= lookEvery {
			looked = time.Now()
			m.numberNeighbours()
		}
	}
	return nil
}

// notes say what this kernel does not report, and what was lost.
func (m *Meter) notes() []string {
	list := []string{}
	irq, steal := m.probe.Separates()
	if !irq {
		list = append(list, "this kernel does not subtract interrupts from the time of threads "+
			"(CONFIG_IRQ_TIME_ACCOUNTING): they count for the thread that ran")
	}
	if !steal {
		list = append(list, "this kernel does not subtract stolen time from the time of threads "+
			"(CONFIG_PARAVIRT_TIME_ACCOUNTING): it counts for the thread that ran")
	}
	if tasks, pairs := m.probe.Lost(); tasks > 0 || pairs > 0 {
		list = append(list, fmt.Sprintf("the tables were full: %d threads were not measured, and %d waits have no "+
			"neighbour", tasks, pairs))
	}
	if n := m.probe.Missed(); n > 0 {
		list = append(list, fmt.Sprintf("%d switches had no event: the thread that ran after such a switch counts as "+
			"the one before", n))
	}
	if m.unread > 0 {
		list = append(list, fmt.Sprintf("%d readings were given up, because the sums were written all the time: the "+
			"next reading has what one misses, and a container without any time may have had none", m.unread))
	}
	if m.tableFull {
		list = append(list, "the table of groups was full: some groups count for the group above them")
	}
	return list
}
