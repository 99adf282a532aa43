package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/doctor"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/requests"
	"plimsoll/internal/probe/runq"
)

// The features of the programs in the kernel. Each part of those that run loads has one of its own, eventsPart and
// its name.
const (
	eventsPart     = doctor.FeatureEvents + "-"
	featureWaits   = "waits"
	featureWeights = "cgroup-mode"
	featureRequest = "requests"
)

// probeEvents finds out which programs of `run` can be loaded here, and removes them again.
func probeEvents() cgroup.Features {
	p, err := probe.Open(probe.Options{Use: true, Ahead: true})
	list := eventFeatures(p.Missing(), err)
	if err == nil {
		if err := p.Close(); err != nil {
			list[0].State, list[0].Detail = cgroup.No, explained(err)
		}
	}
	return list
}

// eventFeatures converts the result into features.
func eventFeatures(missing []probe.Missing, err error) cgroup.Features {
	events := cgroup.Feature{Name: doctor.FeatureEvents, State: cgroup.Yes, Detail: "throttle events come from eBPF as throttles begin", Since: "5.10",
		Source: "tp_btf/sched_switch, sched_wakeup, sched_migrate_task"}
	if err != nil {
		events.State, events.Detail = cgroup.No, explained(err)
	}
	list := cgroup.Features{events}
	for _, part := range probe.Parts() {
		f := cgroup.Feature{Name: eventsPart + part, State: cgroup.Yes, Detail: partDetail(part), Since: "5.10"}
		if err != nil {
			f.State, f.Detail = cgroup.No, "without "+doctor.FeatureEvents
		}
		for _, m := range missing {
			if m.Part == part {
				f.State, f.Detail = cgroup.No, fmt.Sprintf("%s: %s", m.Lost, explained(m.Err))
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

// probeWaits finds out whether the programs of diagnose and of run --waits can be loaded here.
func probeWaits() cgroup.Feature {
	f := cgroup.Feature{Name: featureWaits, State: cgroup.Yes, Detail: "what threads wait for (diagnose, run --waits)", Since: "5.10"}
	p, err := runq.Open(runq.Options{})
	if err == nil {
		err = p.Close()
	}
	if err != nil {
		f.State, f.Detail = cgroup.No, explained(err)
	}
	return f
}

// probeRequests finds out whether the programs of diagnose --requests and of run --requests can be loaded here.
func probeRequests() cgroup.Feature {
	p, err := requests.Open(requests.Options{})
	var clockless error
	if err == nil {
		clockless, err = p.Clockless(), p.Close()
	}
	return requestFeature(clockless, err)
}

// requestFeature converts the result into a feature.
func requestFeature(clockless, err error) cgroup.Feature {
	f := cgroup.Feature{Name: featureRequest, State: cgroup.Yes, Detail: "how long requests take (diagnose, run --requests)", Since: sinceRequests,
		Source: "tp_btf/sk_data_ready, sock_send_length, inet_sock_set_state"}
	switch {
	case errors.Is(err, requests.ErrTracepoint):
		f.State, f.Detail = cgroup.No, "how long requests take cannot be had: "+err.Error()
	case err != nil:
		f.State, f.Detail = cgroup.No, explained(err)
	case clockless != nil:
		f.Detail += ", not what of it was throttled: " + explained(clockless)
	}
	return f
}

// weightsFile is how the kernel spreads a group's weight over its CPUs.
const weightsFile = "/sys/kernel/debug/sched/cgroup_mode"

// probeWeights reads it. The file shows all modes, that in force in parentheses.
func probeWeights(path string) cgroup.Feature {
	f := cgroup.Feature{Name: featureWeights, State: cgroup.No, Detail: "no " + path + " (7.3, and debugfs has to be mounted)", Since: "7.3",
		Source: "kernel/sched/debug.c"}
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
