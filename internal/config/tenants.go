package config

import (
	"fmt"
	"math"
	"slices"

	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// Tenants is what an administrator allows to those who may write pods.
//
// Problem: on a shared cluster whoever may write a pod writes its annotations and labels, and the nodes are not
// theirs. An annotation can ask for a hundred times the limit. A class of LSE or LSR takes CPUs away from all others.
//
// Approach:
//   - A number in an annotation counts up to a maximum: the first entry of annotationMaxima that names the namespace
//     and the number; where there is none, what the pod would have without its annotation. That is what the
//     ConfigMaps and the node's file say, and where they say nothing, the documented default. So an annotation can
//     lower any number, and raise none unless an administrator allows it.
//   - The policy in an annotation counts as it stands. Each of the four is made of what the maxima bound.
//   - Exclusive CPUs and the classes LSE and LSR count only in exclusiveNamespaces, which names nobody by default.
//     Elsewhere a pod of these classes is neither burst nor raised, as at the peer, for that takes nothing from
//     anybody; but it has no exclusive CPUs, and counts as any other load of the node.
//   - A pod in which only init containers have a limit is not burst: its main containers may use what they like.
//   - CPUs above limits are bounded whoever asked for them, at the moment in which they are handed out
//     (internal/policy, bounds.go): the sum over a pod, a namespace or the node cannot be known before.
//
// What is cut or refused is a Cut, for the status and for an Event.
//
// Known limits: class BE needs no permission, since it only lowers. Neither does koordinator.sh/cpuQOS, which is read
// of class LS alone, and prefers no pod to what its class gets (QOSOf). The burst buffer is bounded by its percentage
// only: it moves CPU time that a container had not used.
type Tenants struct {
	Extra     strategy.ExtraCores
	maxima    []maximum // the first one that names a namespace and a number counts
	exclusive *[]string // nil: not said
}

// maximum is one entry of annotationMaxima.
type maximum struct {
	namespaces []string
	most       strategy.Patch
}

// everywhere is the name of all namespaces.
const everywhere = "*"

func names(list []string, namespace string) bool {
	return slices.Contains(list, namespace) || slices.Contains(list, everywhere)
}

// Over lays what t says over what others say.
func (t Tenants) Over(o Tenants) Tenants {
	o.Extra = t.Extra.Over(o.Extra)
	o.maxima = slices.Concat(t.maxima, o.maxima)
	if t.exclusive != nil {
		o.exclusive = t.exclusive
	}
	return o
}

// Cut is what a pod asks for and does not get, because of a bound that is not its own.
type Cut struct {
	Object string // "Pod default/web"
	Key    string // the annotation's or label's name
	Field  string // "" where the key has none
	Asked  string
	Given  string
	Bound  string // whose it is
}

// String is "Pod default/web: koordinator.sh/cpuBurst: cfsQuotaBurstPercent: 500 asked, 300 given: ...".
func (c Cut) String() string {
	text := c.Object + ": " + c.Key + ": "
	if c.Field != "" {
		text += c.Field + ": "
	}
	return fmt.Sprintf("%s%s asked, %s given: %s", text, c.Asked, c.Given, c.Bound)
}

// numbers are the fields of a strategy whose values in an annotation are bounded.
func numbers() []strategy.Number {
	return slices.DeleteFunc(strategy.Numbers(), func(n strategy.Number) bool { return n.Node })
}

// cut cuts the numbers of a strategy with an annotation; own is the strategy without it. A cut of a number that the
// annotation does not name is not reported: the administrator set both.
func (t Tenants) cut(object string, s, own strategy.Strategy, a Asked) (strategy.Strategy, []Cut) {
	var cut []Cut
	// The cap of a start, where nothing else is said.
	own.StartupBurstPercent = max(own.StartupBurstPercent, own.CFSQuotaBurstPercent)
	for _, n := range numbers() {
		most, bound := t.most(n, a.Namespace)
		if bound == "" {
			most, bound = *n.In(&own), "what the pod has without its annotation"
		}
		value := n.In(&s)
		if beyond(*value) <= beyond(most) {
			continue
		}
		*value = most
		if asked := *n.Of(&a.Patch); asked != nil {
			cut = append(cut, Cut{object, a.Key, n.Name, fmt.Sprint(*asked), fmt.Sprint(most), bound})
		}
	}
	return s, cut
}

// most is the maximum of a number, and where it stands; "": there is none. That of the cap is that of a start's cap
// too, where that has none of its own.
func (t Tenants) most(n strategy.Number, namespace string) (most int64, bound string) {
	for _, m := range t.maxima {
		v := *n.Of(&m.most)
		if v == nil && n.Name == "startupBurstPercent" {
			v = m.most.CFSQuotaBurstPercent
		}
		if v != nil && names(m.namespaces, namespace) {
			return *v, "annotationMaxima"
		}
	}
	return 0, ""
}

// beyond orders values so that "no bound" is the greatest.
func beyond(v int64) int64 {
	if v == strategy.Unlimited {
		return math.MaxInt64
	}
	return v
}

// reserved gives a pod the class and the exclusive CPUs that it asks for, as far as its namespace may have them. burst
// is false for a pod whose class is refused.
func (t Tenants) reserved(object string, a Asked, to *Given) (burst bool) {
	to.Class, to.Exclusive = a.Class, a.Exclusive
	if t.exclusive != nil && names(*t.exclusive, a.Namespace) {
		return true
	}
	const bound = "the namespace is not in exclusiveNamespaces"
	if a.Exclusive == workload.ExclusiveYes || a.Exclusive == workload.ExclusiveStrict {
		to.Exclusive = workload.ExclusiveByClass
		to.Cuts = append(to.Cuts, Cut{object, ExclusiveAnnotation, "", string(a.Exclusive), "no exclusive CPUs", bound})
	}
	if a.Class == workload.ClassLSE || a.Class == workload.ClassLSR {
		to.Class = workload.ClassLS
		to.Cuts = append(to.Cuts, Cut{object, a.ClassKey, "", string(a.Class), "LS without burst", bound})
		return false
	}
	return true
}
