// Package features finds out by trying what this machine has beside its control groups (internal/cgroup, Probe): the
// programs in the kernel that can be loaded, plugins of the container runtime, tasks that can be seen, CPUs to reserve.
// What is loaded is removed again.
package features

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/diagnose/meter"
	"plimsoll/internal/doctor"
	"plimsoll/internal/hint"
	"plimsoll/internal/kubelet"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/runq"
)

// Probe is all that this machine can do. Socket is where the container runtime listens for plugins.
func Probe(dir *cgroup.Dir, host cgroup.Host, socket string) cgroup.Features {
	return slices.Concat(cgroup.Probe(dir, host), cgroup.Features{Tasks(cgroup.Detect(dir))}, events(),
		cgroup.Features{waits(), requestTimes(), weights(weightsFile), runtime(socket, containerdVersion),
			reserve(dir, kubelet.OfHost())})
}

// The features of the programs in the kernel. Each part of those that run loads has one of its own, eventsPart and
// its name.
const (
	eventsPart      = doctor.FeatureEvents + "-"
	featureWaits    = "waits"
	featureRequests = "requests"
	featureWeights  = "cgroup-mode"
)

// events finds out which programs of `run` can be loaded here, and removes them again.
func events() cgroup.Features {
	p, err := probe.Open(probe.Options{Use: true, Ahead: true})
	list := eventFeatures(p.Missing(), err)
	if err == nil {
		if err := p.Close(); err != nil {
			list[0].State, list[0].Detail = cgroup.No, hint.Line(hint.With(err, probe.Explain(err)))
		}
	}
	return list
}

// eventFeatures converts the result into features.
func eventFeatures(missing []probe.Missing, err error) cgroup.Features {
	whole := cgroup.Feature{Name: doctor.FeatureEvents, State: cgroup.Yes, Detail: "throttle events come from eBPF " +
		"as throttles begin", Since: "5.10", Source: "tp_btf/sched_switch, sched_wakeup, sched_migrate_task"}
	if err != nil {
		whole.State, whole.Detail = cgroup.No, hint.Line(hint.With(err, probe.Explain(err)))
	}
	list := cgroup.Features{whole}
	for _, part := range probe.Parts() {
		f := cgroup.Feature{Name: eventsPart + part, State: cgroup.Yes, Detail: partDetail(part), Since: "5.10"}
		if err != nil {
			f.State, f.Detail = cgroup.No, "without "+doctor.FeatureEvents
		}
		for _, m := range missing {
			if m.Part == part {
				f.State, f.Detail = cgroup.No, fmt.Sprintf("%s: %s", m.Lost,
					hint.Line(hint.With(m.Err, probe.Explain(m.Err))))
			}
		}
		list = append(list, f)
	}
	return list
}

// partDetail is what a part is for.
func partDetail(part string) string {
	switch part {
	case probe.PartBalance:
		return "events have the use of a group, and the runtime of its CPUs"
	case probe.PartWakeups:
		return "throttles that begin as a task wakes; from 6.18 on a switch shows them"
	case probe.PartPeriods:
		return fmt.Sprintf("the use of each period, of %d CPUs of a group at a time", probe.MostCPUs)
	}
	return fmt.Sprintf("throttles are foreseen, of groups on up to %d CPUs", probe.MostCPUs)
}

// waits finds out whether the programs of diagnose and of run --waits can be loaded here.
func waits() cgroup.Feature {
	f := cgroup.Feature{Name: featureWaits, State: cgroup.Yes, Detail: "what threads wait for (diagnose, run --waits)",
		Since: "5.10"}
	p, err := runq.Open(runq.Options{})
	if err == nil {
		err = p.Close()
	}
	if err != nil {
		f.State, f.Detail = cgroup.No, hint.Line(hint.With(err, probe.Explain(err)))
	}
	return f
}

// requestTimes finds out whether the programs of diagnose --requests and of run --requests can be loaded here.
func requestTimes() cgroup.Feature {
	f := cgroup.Feature{Name: featureRequests, State: cgroup.Yes,
		Detail: "how long containers take to answer (diagnose --requests, run --requests)",
		Since:  "6.12", Source: "tp_btf/sk_data_ready, sock_send_length, inet_sock_set_state"}
	m, err := meter.OpenRequests(nil)
	if err == nil {
		err = m.Close()
	}
	if err != nil {
		f.State, f.Detail = cgroup.No, hint.Line(hint.With(err, probe.Explain(err)))
	}
	return f
}

// weightsFile is how the kernel spreads a group's weight over its CPUs.
const weightsFile = "/sys/kernel/debug/sched/cgroup_mode"

// weights reads it. The file shows all modes, that in force in parentheses.
func weights(path string) cgroup.Feature {
	f := cgroup.Feature{Name: featureWeights, State: cgroup.No, Detail: "no " + path +
		" (7.3, and debugfs has to be mounted)", Since: "7.3", Source: "kernel/sched/debug.c"}
	text, err := os.ReadFile(path)
	if err != nil {
		return f
	}
	f.State, f.Detail = cgroup.Unknown, strings.TrimSpace(string(text))
	if _, rest, found := strings.Cut(f.Detail, "("); found {
		mode, _, _ := strings.Cut(rest, ")")
		f.State, f.Detail = cgroup.Yes, "a group's weight is spread over its CPUs by mode "+mode
	}
	return f
}
