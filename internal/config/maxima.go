package config

import (
	"fmt"
	"math"
	"slices"

	"plimsoll/internal/strategy"
)

// Maxima are the most that a pod can get by its annotation. They bind those who may write pods. The administrator sets
// them, and they do not bind a pod without an annotation: it has what the ConfigMaps say. A nil field sets no bound.
//
// CPU above the limit is bounded by cfsQuotaBurstPercent, in a start by startupBurstPercent, and the maximum of the one is
// that of the other too: a burst buffer only moves CPU time that a container had not
// used. So the extra cores are turned into percent, the same for all containers of a pod, and for all pods with an
// annotation of one namespace on this node.
type Maxima struct {
	CPUBurstPercent            *int64
	CFSQuotaBurstPercent       *int64
	CFSQuotaBurstPeriodSeconds *int64
	ExtraCoresPerPod           *float64
	ExtraCoresPerNamespace     *float64
	exempt                     []string // namespaces in which annotations may go beyond
}

// Share is what a pod with an annotation is judged by.
type Share struct {
	Namespace     string
	PodCPUs       float64 // sum of the limits of its containers
	NamespaceCPUs float64 // of the namespace's pods on this node that raise quotas by an annotation
}

// Bound cuts the strategy of a pod with an annotation; own is its strategy without the annotation. Bound reports what it
// cut from the annotation's fields. A cut of any other field is not reported: the administrator set value and maximum.
//
// The cap of a start is bounded by the cap of own. It is meant for new containers, and a person who may write pods can
// always make new ones.
func (m Maxima) Bound(object string, s, own strategy.Strategy, a Asked) (strategy.Strategy, []*Rejected) {
	if slices.Contains(m.exempt, a.Share.Namespace) {
		return s, nil
	}
	var bad []*Rejected
	cut := func(field string, value, asked *int64, most int64, why string) {
		if beyond(*value) <= beyond(most) {
			return
		}
		if asked != nil {
			bad = append(bad, &Rejected{Object: object, Key: Annotation, Field: field,
				Msg: fmt.Sprintf("%d is above the administrator's %s: cut to %d", *value, why, most)})
		}
		*value = most
	}
	if most := m.CPUBurstPercent; most != nil && s.Policy.Burst() {
		cut("cpuBurstPercent", &s.CPUBurstPercent, a.Patch.CPUBurstPercent, *most, "maximum")
	}
	if !s.Policy.Quota() {
		return s, bad
	}
	if asked := a.Patch.StartupBurstPercent; asked != nil {
		most, why := own.CFSQuotaBurstPercent, "cfsQuotaBurstPercent"
		if own.StartupBurstPercent > most {
			most, why = own.StartupBurstPercent, "startupBurstPercent"
		}
		cut("startupBurstPercent", &s.StartupBurstPercent, asked, most, why)
	}
	for _, cap := range []struct {
		field        string
		value, asked *int64
	}{
		{"cfsQuotaBurstPercent", &s.CFSQuotaBurstPercent, a.Patch.CFSQuotaBurstPercent},
		{"startupBurstPercent", &s.StartupBurstPercent, a.Patch.StartupBurstPercent},
	} {
		if most := m.CFSQuotaBurstPercent; most != nil {
			cut(cap.field, cap.value, cap.asked, *most, "maximum")
		}
		cut(cap.field, cap.value, cap.asked, percent(m.ExtraCoresPerPod, a.Share.PodCPUs), "extraCoresPerPod")
		cut(cap.field, cap.value, cap.asked, percent(m.ExtraCoresPerNamespace, a.Share.NamespaceCPUs), "extraCoresPerNamespace")
	}
	if most := m.CFSQuotaBurstPeriodSeconds; most != nil {
		cut("cfsQuotaBurstPeriodSeconds", &s.CFSQuotaBurstPeriodSeconds, a.Patch.CFSQuotaBurstPeriodSeconds, *most, "maximum")
	}
	return s, bad
}

// beyond orders values so that "no bound" is the greatest.
func beyond(v int64) int64 {
	if v == strategy.Unlimited {
		return math.MaxInt64
	}
	return v
}

// percent of the limits that leaves so many extra cores above them.
func percent(extra *float64, limits float64) int64 {
	if extra == nil || limits <= 0 {
		return math.MaxInt64
	}
	// The grain is far below what a percent is of any limit: 0.3 cores above 0.5 are 160 %, not 159.99.
	return 100 + int64(min(*extra/limits*100+1e-9, 1e6))
}

// ParseMaxima reads the key plimsoll-maxima. What is bad keeps its value of last.
func ParseMaxima(object, text string, last Maxima) (Maxima, []*Rejected) {
	return parsed(object, MaximaKey, text, last, func(r *jsonReader, list []member) Maxima {
		p := r.patch("", list, strategy.Patch{CPUBurstPercent: last.CPUBurstPercent, CFSQuotaBurstPercent: last.CFSQuotaBurstPercent,
			CFSQuotaBurstPeriodSeconds: last.CFSQuotaBurstPeriodSeconds}, ofPod)
		m := Maxima{CPUBurstPercent: p.CPUBurstPercent, CFSQuotaBurstPercent: p.CFSQuotaBurstPercent,
			CFSQuotaBurstPeriodSeconds: p.CFSQuotaBurstPeriodSeconds}
		for _, f := range list {
			switch {
			case f.null():
			case f.is("extraCoresPerPod"):
				m.ExtraCoresPerPod = r.cores("extraCoresPerPod", f.value, last.ExtraCoresPerPod)
			case f.is("extraCoresPerNamespace"):
				m.ExtraCoresPerNamespace = r.cores("extraCoresPerNamespace", f.value, last.ExtraCoresPerNamespace)
			case f.is("exemptNamespaces"):
				if list, ok := r.texts("exemptNamespaces", f.value); ok {
					m.exempt = list
				} else {
					m.exempt = last.exempt
				}
			}
		}
		return m
	})
}

func (r *jsonReader) cores(field string, raw []byte, last *float64) *float64 {
	return kept(r, field, raw, last, r.number, func(v *float64) *fault {
		if *v < 0 || *v > maxRequest {
			return faultf("", "%v is outside 0..%d", *v, maxRequest)
		}
		return nil
	})
}
