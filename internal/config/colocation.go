package config

import (
	"time"

	"github.com/goccy/go-yaml/ast"

	"plimsoll/internal/strategy"
)

// colocation reads the section of the same name.
func (r reader) colocation(p *strategy.ColocationPatch) read {
	return func(field string, n ast.Node) error {
		return r.mapping(field, n, fields{
			{"enable", r.flag(func(on bool) { p.Enable = &on })},
			{"mechanism", r.text(func(text string) *fault {
				m := strategy.Mechanism(text)
				return setField(&p.Mechanism, &m, func() *fault { return checkMechanism(*p, text) })
			})},
			{"slice", r.text(func(text string) *fault {
				slice, err := time.ParseDuration(text)
				if err != nil {
					return faultf("such as 3ms", "%q is not a time", text)
				}
				return setField(&p.Slice, &slice, func() *fault { return faultOf(p.Check(), "") })
			})},
			{"kubeQOS", r.flag(func(on bool) { p.KubeQOS = &on })},
			{"suppress", r.optional(r.suppress(&p.Suppress))},
			{"schedExt", r.optional(r.schedExt(&p.SchedExt))},
			{"lsrClass", r.optional(r.class(&p.LSR))},
			{"lsClass", r.optional(r.class(&p.LS))},
			{"beClass", r.optional(r.class(&p.BE))},
			{"systemClass", r.optional(r.class(&p.System))},
		})
	}
}

// experimental refuses what needs experimental: true, in the section colocation.
func (r reader) experimental(p strategy.ColocationPatch, section ast.Node) error {
	if p.Mechanism == nil || *p.Mechanism != strategy.MechanismSchedExt {
		return nil
	}
	const field = "mechanism"
	at := line(section)
	if m, ok := section.(*ast.MappingNode); ok {
		for _, kv := range m.Values {
			if kv.Key.GetToken().Value == field {
				at = line(kv.Value)
			}
		}
	}
	return faultf("write experimental: true at the top level to use it all the same; docs/CONFIG.md says what is "+
		"known against it", "%s is experimental", strategy.MechanismSchedExt).at(r.name, at, "colocation."+field)
}

// class reads what a class gets, in the shape of the peer's resource-qos-config.
func (r reader) class(p *strategy.CPUQOSPatch) read {
	return func(field string, n ast.Node) error {
		return r.mapping(field, n, fields{{"cpuQOS", r.optional(func(field string, n ast.Node) error {
			return r.mapping(field, n, fields{
				{"enable", r.flag(func(on bool) { p.Enable = &on })},
				{"groupIdentity", r.integer(func(v int64) *fault {
					return setField(&p.GroupIdentity, &v, func() *fault { return checkQOS(*p) })
				})},
				{"schedIdle", r.integer(func(v int64) *fault {
					return setField(&p.SchedIdle, &v, func() *fault { return checkQOS(*p) })
				})},
				{"coreExpeller", r.flag(func(on bool) { p.CoreExpeller = &on })},
			})
		})}})
	}
}

// suppress reads the bound of offline work, with the names of the peer's resource-threshold-config.
func (r reader) suppress(p *strategy.SuppressPatch) read {
	percent := func(to **int64) read {
		return r.integer(func(v int64) *fault {
			return setField(to, &v, func() *fault { return faultOf(p.Check(), "") })
		})
	}
	return func(field string, n ast.Node) error {
		return r.mapping(field, n, fields{
			{"enable", r.flag(func(on bool) { p.Enable = &on })},
			{"cpuSuppressPolicy", r.text(func(text string) *fault {
				policy := strategy.SuppressPolicy(text)
				return setField(&p.Policy, &policy, func() *fault { return oneOf(text, strategy.SuppressPolicies()) })
			})},
			{"cpuSuppressThresholdPercent", percent(&p.ThresholdPercent)},
			{"cpuSuppressMinPercent", percent(&p.MinPercent)},
		})
	}
}

// schedExt reads the options of the scheduler of mechanism schedExt.
func (r reader) schedExt(p *strategy.SchedExtPatch) read {
	return func(field string, n ast.Node) error {
		return r.mapping(field, n, fields{
			{"floorPercent", r.number(func(v float64) *fault {
				return setField(&p.FloorPercent, &v, func() *fault { return faultOf(p.Check(), "") })
			})},
			{"watchdogSeconds", r.integer(func(v int64) *fault {
				return setField(&p.WatchdogSeconds, &v, func() *fault { return faultOf(p.Check(), "") })
			})},
		})
	}
}

func checkMechanism(p strategy.ColocationPatch, text string) *fault {
	var names []string
	for _, m := range strategy.Mechanisms() {
		names = append(names, string(m))
	}
	return faultOf(p.Check(), didYouMean(text, names))
}

func checkQOS(p strategy.CPUQOSPatch) *fault { return faultOf(p.Check(), "") }

// flag reads true or false.
func (r reader) flag(take func(bool)) read {
	return func(field string, n ast.Node) error {
		b, ok := n.(*ast.BoolNode)
		if !ok {
			return r.wrong(field, n, "true or false")
		}
		take(b.Value)
		return nil
	}
}
