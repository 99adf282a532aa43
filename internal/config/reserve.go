package config

import (
	"strings"

	"github.com/goccy/go-yaml/ast"

	"plimsoll/internal/cpu"
	"plimsoll/internal/printable"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// ExclusiveAnnotation is the annotation of a pod that requests exclusive CPUs for its containers.
const ExclusiveAnnotation = "plimsoll/exclusive"

// Reserve is how the node's CPUs are divided among the containers that request exclusive CPUs.
func (f *File) Reserve() strategy.Reserve {
	if f.reserve == nil {
		return strategy.DefaultReserve()
	}
	return *f.reserve
}

// reserve reads the section of that name.
func (r reader) reserve(f *File) read {
	return r.optional(func(field string, n ast.Node) error {
		s := strategy.DefaultReserve()
		f.reserve = &s
		return r.mapping(field, n, fields{
			{"policy", r.text(func(text string) *fault {
				s.Policy = strategy.ReservePolicy(text)
				return oneOf(text, strategy.ReservePolicies())
			})},
			{"minSharedCPUs", r.minShared(&s.MinShared)},
			{"reservedCPUs", r.cpuList(func(set cpu.Set) { s.CPUs = set })},
			{"shield", r.flag(func(on bool) { s.Shield = on })},
			{"exclusive", r.exclusive(func(e workload.Exclusive) {
				s.All, s.Strict = e != workload.ExclusiveNo, e == workload.ExclusiveStrict
			})},
		})
	})
}

// minShared reads an amount of CPU that leaves everybody else one.
func (r reader) minShared(to *float64) read {
	return func(field string, n ast.Node) error {
		if err := r.quantity(func(cpus float64) { *to = cpus })(field, n); err != nil || *to >= 1 {
			return err
		}
		return faultf("1 is the least", "leaves everybody else less than a CPU").at(r.name, line(n), field)
	}
}

func oneOf(text string, words []string) *fault {
	for _, w := range words {
		if text == w {
			return nil
		}
	}
	return faultf(didYouMean(text, words), "%q is not one of %s", printable.Cut(text, longestWord),
		strings.Join(words, ", "))
}

// cpuList reads the kernel's list format: 0-3,8. A single CPU is a number to YAML.
func (r reader) cpuList(take func(cpu.Set)) read {
	return func(field string, n ast.Node) error {
		switch n.(type) {
		case *ast.StringNode, *ast.IntegerNode:
		default:
			return r.wrong(field, n, `a list of CPUs, such as "0-3,8"`)
		}
		set, err := cpu.ParseSet(n.GetToken().Value)
		if err != nil {
			return faultf(`such as "0-3,8"`, "%v", err).at(r.name, line(n), field)
		}
		take(set)
		return nil
	}
}

// exclusive reads true, false or strict.
func (r reader) exclusive(take func(workload.Exclusive)) read {
	return func(field string, n ast.Node) error {
		switch n.(type) {
		case *ast.BoolNode, *ast.StringNode:
		default:
			return r.wrong(field, n, "true, false or strict")
		}
		text := n.GetToken().Value
		take(workload.Exclusive(text))
		return r.place(checkExclusive(text), field, n)
	}
}

func checkExclusive(text string) *fault {
	return oneOf(text, []string{string(workload.ExclusiveYes), string(workload.ExclusiveNo),
		string(workload.ExclusiveStrict)})
}
