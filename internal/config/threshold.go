package config

import "plimsoll/internal/strategy"

// ThresholdKey is the key of the peer's ConfigMap that bounds offline work.
const ThresholdKey = "resource-threshold-config"

// ParseThreshold reads the key resource-threshold-config. Only its suppression of CPU matters here: eviction
// and memory belong to other programs. A bad field keeps its value of last.
func ParseThreshold(object, text string, last Cluster) (Cluster, []*Rejected) {
	return parsed(object, ThresholdKey, text, last, func(r *jsonReader, list []member) Cluster {
		return r.cluster(list, last, r.suppress)
	})
}

func (r *jsonReader) suppress(field string, list []member, last strategy.NodePatch) strategy.NodePatch {
	var p strategy.NodePatch
	s, old := &p.Colocation.Suppress, last.Colocation.Suppress
	for _, m := range list {
		at := join(field, m.name)
		switch {
		case m.null():
		case m.is("enable"):
			s.Enable = r.flag(at, m.value, old.Enable)
		case m.is("cpuSuppressPolicy"):
			s.Policy = r.suppressPolicy(at, m.value, old.Policy)
		case m.is("cpuSuppressThresholdPercent"):
			s.ThresholdPercent = r.percent(at, m.value, old.ThresholdPercent)
		case m.is("cpuSuppressMinPercent"):
			s.MinPercent = r.percent(at, m.value, old.MinPercent)
		}
	}
	return p
}

func (r *jsonReader) percent(field string, raw []byte, last *int64) *int64 {
	return kept(r, field, raw, last, r.integer, func(v *int64) *fault {
		return faultOf(strategy.SuppressPatch{ThresholdPercent: v}.Check(), "")
	})
}

func (r *jsonReader) suppressPolicy(field string, raw []byte, last *strategy.SuppressPolicy) *strategy.SuppressPolicy {
	text, ok := r.text(field, raw)
	if !ok {
		return last
	}
	if f := oneOf(text, strategy.SuppressPolicies()); f != nil {
		r.reject(field, f)
		return last
	}
	policy := strategy.SuppressPolicy(text)
	return &policy
}
