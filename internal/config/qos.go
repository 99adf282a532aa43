package config

import (
	"encoding/json"
	"fmt"
	"strings"

	"plimsoll/internal/strategy"
)

// QOSKey is the key of the peer's ConfigMap that says what classes get, and QOSAnnotation the annotation of a pod of
// class LS that gets something else.
const (
	QOSKey        = "resource-qos-config"
	QOSAnnotation = "koordinator.sh/cpuQOS"
)

// ParseQOS reads the key resource-qos-config, of which only CPU is of interest here.
// What is bad keeps its value of last.
func ParseQOS(object, text string, last Cluster) (Cluster, []*Rejected) {
	return parsed(object, QOSKey, text, last, func(r *jsonReader, list []member) Cluster {
		return r.cluster(list, last, r.classes)
	})
}

// classes reads what each class gets.
func (r *jsonReader) classes(field string, list []member, last strategy.NodePatch) strategy.NodePatch {
	var p strategy.NodePatch
	c, old := &p.Colocation, last.Colocation
	for _, m := range list {
		at := join(field, m.name)
		switch {
		case m.null():
		case m.is("policies"):
			c.Mechanism = r.cpuPolicy(at, m.value, old.Mechanism)
		case m.is("lsrClass"):
			c.LSR = r.class(at, m.value, old.LSR)
		case m.is("lsClass"):
			c.LS = r.class(at, m.value, old.LS)
		case m.is("beClass"):
			c.BE = r.class(at, m.value, old.BE)
		case m.is("systemClass"):
			c.System = r.class(at, m.value, old.System)
		}
	}
	return p
}

// class reads the CPU fields of a class. Memory, cache and the rest belong to other programs.
func (r *jsonReader) class(field string, raw []byte, last strategy.CPUQOSPatch) strategy.CPUQOSPatch {
	list, ok := r.members(field, raw)
	if !ok {
		return last
	}
	for _, m := range list {
		if m.is("cpuQOS") {
			if fields, ok := r.members(field+".cpuQOS", m.value); ok {
				return r.qos(field+".cpuQOS", fields, last)
			}
			return last
		}
	}
	return strategy.CPUQOSPatch{}
}

func (r *jsonReader) qos(field string, list []member, last strategy.CPUQOSPatch) strategy.CPUQOSPatch {
	var p strategy.CPUQOSPatch
	for _, m := range list {
		at := join(field, m.name)
		switch {
		case m.null():
		case m.is("enable"):
			p.Enable = r.flag(at, m.value, last.Enable)
		case m.is("coreExpeller"):
			p.CoreExpeller = r.flag(at, m.value, last.CoreExpeller)
		case m.is("groupIdentity"):
			p.GroupIdentity = r.grade(at, m.value, last.GroupIdentity, func(v *int64) strategy.CPUQOSPatch {
				return strategy.CPUQOSPatch{GroupIdentity: v}
			})
		case m.is("schedIdle"):
			p.SchedIdle = r.grade(at, m.value, last.SchedIdle, func(v *int64) strategy.CPUQOSPatch {
				return strategy.CPUQOSPatch{SchedIdle: v}
			})
		}
	}
	return p
}

// grade reads a whole number that may stand in the field of which in makes a patch.
func (r *jsonReader) grade(field string, raw []byte, last *int64, in func(*int64) strategy.CPUQOSPatch) *int64 {
	return kept(r, field, raw, last, r.integer, func(v *int64) *fault { return checkQOS(in(v)) })
}

func (r *jsonReader) flag(field string, raw []byte, last *bool) *bool {
	var v bool
	if err := json.Unmarshal(raw, &v); err != nil {
		r.wrong(field, "true or false", raw)
		return last
	}
	return &v
}

// cpuPolicy reads the peer's choice of a mechanism. Its groupIdentity is the default there, also on kernels without it,
// so it means auto, and replaces what weaker levels say; its coreSched is ours.
func (r *jsonReader) cpuPolicy(field string, raw []byte, last *strategy.Mechanism) *strategy.Mechanism {
	list, ok := r.members(field, raw)
	if !ok {
		return last
	}
	for _, m := range list {
		if !m.is("cpuPolicy") || m.null() {
			continue
		}
		text, ok := r.text(field+".cpuPolicy", m.value)
		if !ok {
			return last
		}
		switch text {
		case "":
			return nil
		case "groupIdentity":
			auto := strategy.MechanismAuto
			return &auto
		case "coreSched":
			coreSched := strategy.MechanismCoreSched
			return &coreSched
		}
		r.reject(field+".cpuPolicy", faultf(didYouMean(text, []string{"groupIdentity", "coreSched"}),
			"%q is neither groupIdentity nor coreSched", text))
		return last
	}
	return nil
}

// QOSOf is what a pod gets that asks for something else than its class has: no preference, for that would be to the
// cost of the pods that ask for nothing.
func QOSOf(object string, class strategy.CPUQOS, asked strategy.CPUQOSPatch) (strategy.CPUQOS, []Cut) {
	const bound = "what its class gets"
	q := asked.Over(class)
	if q.Identity() > class.Identity() {
		words := func(q strategy.CPUQOS) string { return fmt.Sprintf("%s (%d)", q.Rank(), q.Identity()) }
		return class, []Cut{{object, QOSAnnotation, "", words(q), words(class), bound}}
	}
	if q.Expels() && !class.Expels() {
		q.CoreExpeller = false
		return q, []Cut{{object, QOSAnnotation, "coreExpeller", "true", "false", bound}}
	}
	return q, nil
}

// ParseQOSAnnotation reads the annotation by which a pod replaces the settings of its class.
func ParseQOSAnnotation(object, text string, last strategy.CPUQOSPatch) (strategy.CPUQOSPatch, []*Rejected) {
	if strings.TrimSpace(text) == "" {
		return strategy.CPUQOSPatch{}, nil
	}
	if bad := tooLong(object, QOSAnnotation, text); bad != nil {
		return last, bad
	}
	return parsed(object, QOSAnnotation, text, last, func(r *jsonReader, list []member) strategy.CPUQOSPatch {
		return r.qos("", list, last)
	})
}
