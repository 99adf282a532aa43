package peers

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/experiment"
	"plimsoll/lab/frame"
)

// none stands where a way has no such figure; unmeasured where this run did not take it.
const (
	none       = "-"
	unmeasured = "not measured"
)

// row is a line of the table: what it is, and of each way.
type row struct {
	name string
	of   func(*Way) string
}

// WriteText writes the result for people.
func (r *Result) WriteText(page *bytes.Buffer) {
	m, s := r.Machine, r.Settings
	fmt.Fprintf(page, "Kernel %s, cgroup %s, %d x %s; Kubernetes %s, containerd %s; koordlet %s, plimsoll %s.\n",
		m.Kernel, m.Cgroup, m.CPUs, m.CPU, m.Kubernetes, m.Containerd, m.Koordlet, m.Plimsoll)
	fmt.Fprintf(page, "Service: Apache, a text of 1 MiB compressed for each of %g requests a second, %v, limit %s "+
		"CPUs. Full node: %d more pods, limit %s CPUs.\n\n", s.Rate, s.Load, cpus(s.Limit), s.Pods, cpus(s.Small))
	table := [][]string{{""}}
	for _, w := range r.Ways {
		table[0] = append(table[0], w.Name)
	}
	for _, line := range r.rows() {
		cells := []string{line.name}
		for i := range r.Ways {
			cells = append(cells, line.of(&r.Ways[i]))
		}
		table = append(table, cells)
	}
	Markdown(page, table)
}

// Markdown writes rows as a table that is readable as it stands.
func Markdown(page *bytes.Buffer, table [][]string) {
	w := tabwriter.NewWriter(page, 0, 0, 1, ' ', 0)
	for i, cells := range table {
		fmt.Fprintf(w, "| %s\t|\n", strings.Join(cells, "\t| "))
		if i == 0 {
			fmt.Fprintf(w, "|%s\n", strings.Repeat("---|", len(cells)))
		}
	}
	w.Flush() // into memory: cannot fail
}

func (r *Result) rows() []row {
	s := r.Settings
	return slices.Concat(serviceRows(), stepRows(s), costRows(s), resizeRows(s), leftRows(s))
}

// given has a cell say something of a part of a way, and something else where the way has no such part.
func given[T any](part func(*Way) *T, otherwise string) func(of func(*T) string) func(*Way) string {
	return func(of func(*T) string) func(*Way) string {
		return func(w *Way) string {
			if x := part(w); x != nil {
				return of(x)
			}
			return otherwise
		}
	}
}

func serviceRows() []row {
	of := given(func(w *Way) *Service { return w.Service }, unmeasured)
	return []row{
		{"response time p50", of(func(s *Service) string { return spell(s.P50) })},
		{"p90", of(func(s *Service) string { return spell(s.P90) })},
		{"p99", of(func(s *Service) string { return spell(s.P99) })},
		{"requests", of(func(s *Service) string { return strconv.Itoa(s.Requests) })},
		{"throttled periods", of(func(s *Service) string {
			return fmt.Sprintf("%.1f %%", 100*experiment.Ratio(s.Throttled, s.Periods))
		})},
		{"time stood still", of(func(s *Service) string { return fmt.Sprintf("%.2f s", s.Stood.Seconds()) })},
		{"CPUs used", of(func(s *Service) string { return fmt.Sprintf("%.3f", s.CPUs) })},
	}
}

func stepRows(s Settings) []row {
	of := func(f func([]Step) string) func(*Way) string {
		return func(w *Way) string {
			if len(w.Steps) == 0 {
				return none
			}
			return f(w.Steps)
		}
	}
	return []row{
		{"first throttle to first write", of(effects)},
		{fmt.Sprintf("stood still, of %v at a full CPU", s.Spin), of(func(steps []Step) string {
			return spell(time.Duration(experiment.MedianOf(steps, func(x Step) float64 { return float64(x.Stood) })))
		})},
	}
}

// effects is the median and the longest time to a first write, and how many throttles had none.
func effects(steps []Step) string {
	var times []time.Duration
	throttled := 0
	for _, s := range steps {
		if s.Effect.Throttled {
			throttled++
		}
		if s.Effect.Written {
			times = append(times, s.Effect.After)
		}
	}
	switch {
	case throttled == 0:
		return "nothing throttled"
	case len(times) == 0:
		return "no write"
	}
	slices.Sort(times)
	text := fmt.Sprintf("%s, longest %s", spell(frame.Quantile(times, 0.5)), spell(times[len(times)-1]))
	if missing := throttled - len(times); missing > 0 {
		text += fmt.Sprintf("; %d without", missing)
	}
	return text
}

func costRows(s Settings) []row {
	one, many := given(func(w *Way) *Cost { return w.One }, none), given(func(w *Way) *Cost { return w.Many }, none)
	used := func(c *Cost) string { return fmt.Sprintf("%.2f %%", 100*c.CPUs) }
	size := func(c *Cost) string { return fmt.Sprintf("%.0f MiB", float64(c.RSS)/(1<<20)) }
	pods := fmt.Sprintf("%d pods, idle", s.Pods)
	return []row{
		{"agent's CPU, 1 pod under load, of one CPU", one(used)}, {"its memory (RSS)", one(size)},
		{"agent's CPU, " + pods + ", of one CPU", many(used)}, {"its memory (RSS), " + pods, many(size)},
	}
}

func resizeRows(s Settings) []row {
	of := given(func(w *Way) *Resize { return w.Resize }, none)
	return []row{
		{fmt.Sprintf("resize to %s CPUs: raised at that moment to", cpus(s.Resized)),
			of(func(r *Resize) string { return cpus(r.Raised.Container) })},
		{"the kubelet's answer", of(answer)},
		{"what stands afterwards, without load", of(func(r *Resize) string { return r.After.text(s.Resized) })},
	}
}

// answer is what the kubelet said of a resize.
func answer(r *Resize) string {
	text := "not done"
	if r.Done {
		text = "done in " + spell(r.Took)
	}
	if r.Error != "" {
		text += fmt.Sprintf("; error for %s", spell(r.Failed))
	}
	return text
}

func leftRows(s Settings) []row {
	of, left := given(func(w *Way) *Kill { return w.Kill }, none), given(func(w *Way) *Left { return w.Stopped }, none)
	return []row{
		{"kill -9: what stands at once", of(func(k *Kill) string { return k.At.text(s.Resized) })},
		{fmt.Sprintf("%v later, without load", s.Patience),
			of(func(k *Kill) string { return k.Later.text(s.Resized) })},
		{"SIGTERM: groups whose quota, burst is not the kubelet's", left(func(l *Left) string {
			return fmt.Sprintf("%d, %d of %d", l.Quotas, l.Bursts, l.Groups)
		})},
	}
}

// text is what the files hold, beside the limit that is declared.
func (f Files) text(limit time.Duration) string {
	quota, burst := f.Kept(limit)
	text := "the limit"
	if !quota {
		text = fmt.Sprintf("container %s, pod %s", cpus(f.Container), cpus(f.Pod))
	}
	if !burst {
		text += fmt.Sprintf("; burst %s, %s", spell(f.ContainerBurst), spell(f.PodBurst))
	}
	return text
}

// cpus is a quota as a number of CPUs.
func cpus(quota time.Duration) string {
	if quota == cpu.Unlimited {
		return "unlimited"
	}
	return fmt.Sprintf("%.3g", float64(quota)/float64(cpu.DefaultPeriod))
}

// spell writes a duration with three digits.
func spell(d time.Duration) string {
	switch {
	case d >= time.Second:
		return fmt.Sprintf("%.3g s", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.3g ms", experiment.Milliseconds(d))
	}
	return fmt.Sprintf("%.3g us", float64(d)/float64(time.Microsecond))
}
