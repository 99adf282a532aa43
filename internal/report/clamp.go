package report

import (
	"cmp"
	"fmt"
	"slices"
)

// Clamp is what a pod or a container asks for and does not get, because of a bound that is not its own. Nothing is
// wrong.
type Clamp struct {
	Object string `json:"object"`          // such as `Pod default/web`, or a container's name
	Key    string `json:"key"`             // the annotation, the label, or `CPUs above the limit`
	Field  string `json:"field,omitempty"` // of the annotation
	Asked  string `json:"asked"`           // what it asks for
	Given  string `json:"given"`           // what it gets
	// whose bound it is: `annotationMaxima`, `exclusiveNamespaces`, what the pod has without its annotation, or one of
	// the `extraCores` (for 10 s after it kept a container from more)
	Bound string `json:"bound"`
}

// Who may write annotations chooses how many there are.
const (
	mostClamped = 200 // that a status has
	mostInText  = 20
)

// AddClamps adds to what is clamped: a list, which is a part of this many. A status keeps the first of all.
func (s *Status) AddClamps(list []Clamp, now int) {
	s.ClampedNow += now
	s.Clamped = append(s.Clamped, list...)
	slices.SortFunc(s.Clamped, func(a, b Clamp) int {
		return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Bound, b.Bound))
	})
	s.Clamped = s.Clamped[:min(len(s.Clamped), mostClamped)]
}

// line is "Pod default/web: koordinator.sh/cpuBurst: cfsQuotaBurstPercent: 500 asked, 300 given: ...".
func (c Clamp) line() string {
	text := c.Object + ": " + c.Key + ": "
	if c.Field != "" {
		text += c.Field + ": "
	}
	return fmt.Sprintf("%s%s asked, %s given: %s", text, c.Asked, c.Given, c.Bound)
}

func (s Status) clamps(p *page) {
	if len(s.Clamped) == 0 {
		return
	}
	p.printf("\nclamped:\n")
	for i, c := range s.Clamped {
		if i == mostInText {
			p.printf("  %d more (hint: `plimsoll status --json` lists the first %d in clamped)\n", s.ClampedNow-mostInText, mostClamped)
			break
		}
		p.printf("  %s\n", Printable(c.line()))
	}
}

func clampMetrics() []metric[Status] {
	const help = "Number of requests of pods and containers that a bound of an administrator clamps or refuses."
	return []metric[Status]{gauge("clamped", help, nil, func(s Status) float64 { return float64(s.ClampedNow) })}
}
