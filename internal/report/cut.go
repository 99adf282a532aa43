package report

import (
	"cmp"
	"fmt"
	"slices"
)

// Cut is what a pod or a container asks for and does not get, because of a bound that is not its own. Nothing is
// wrong.
type Cut struct {
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
	mostCuts   = 200 // that a status has
	mostInText = 20
)

// AddCuts adds to the requests that are cut: a list, which is a part of this many. A status keeps the first of all.
func (s *Status) AddCuts(list []Cut, now int) {
	s.CutsNow += now
	s.Cuts = append(s.Cuts, list...)
	slices.SortFunc(s.Cuts, func(a, b Cut) int {
		return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Field, b.Field),
			cmp.Compare(a.Bound, b.Bound))
	})
	s.Cuts = s.Cuts[:min(len(s.Cuts), mostCuts)]
}

// line is "Pod default/web: koordinator.sh/cpuBurst: cfsQuotaBurstPercent: 500 asked, 300 given: ...".
func (c Cut) line() string {
	text := c.Object + ": " + c.Key + ": "
	if c.Field != "" {
		text += c.Field + ": "
	}
	return fmt.Sprintf("%s%s asked, %s given: %s", text, c.Asked, c.Given, c.Bound)
}

func (s Status) cuts(p *page) {
	if len(s.Cuts) == 0 {
		return
	}
	p.printf("\ncut:\n")
	for i, c := range s.Cuts {
		if i == mostInText {
			p.printf("  %d more (hint: %s lists the first %d in cuts)\n", s.CutsNow-mostInText,
				Called("`plimsoll status --json`", s.Flags), mostCuts)
			break
		}
		p.printf("  %s\n", Printable(c.line()))
	}
}

func cutMetrics() []metric[Status] {
	const help = "Number of requests of pods and containers that a bound of an administrator cuts or refuses."
	return []metric[Status]{gauge("cut_requests", help, nil, func(s Status) float64 { return float64(s.CutsNow) })}
}
