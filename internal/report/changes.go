package report

import (
	"cmp"
	"io"

	"plimsoll/internal/plan"
)

// The formats of `plimsoll plan --json` and of the results of release, hold and restore.
const (
	PlanSchema    = "plimsoll.plan/v1"
	ResultsSchema = "plimsoll.results/v1"
)

// Plan is a dry run: what would be changed.
type Plan struct {
	Schema string `json:"schema"`
	// what would be changed, in the order in which it would be written
	Changes []plan.Change     `json:"changes"`
	Names   map[string]string `json:"names,omitempty"` // names of groups by path, where they are known
	// for people: globs that match no control group, and where nothing is to be changed, what is left out
	Notes []string `json:"notes,omitempty"`
}

// NewPlan wraps changes for output.
func NewPlan(changes []plan.Change, notes ...string) Plan {
	if changes == nil {
		changes = []plan.Change{}
	}
	return Plan{Schema: PlanSchema, Changes: changes, Notes: notes}
}

// Text writes the plan for people, in the order in which it would be done.
func (p Plan) Text(w io.Writer) error {
	var out page
	if len(p.Changes) == 0 {
		out.printf("nothing to change\n")
	} else {
		first := "CGROUP"
		if len(p.Names) > 0 {
			first = "NAME"
		}
		rows := [][]string{{first, "KNOB", "FROM", "TO", "WHY"}}
		for _, c := range p.Changes {
			rows = append(rows, []string{cmp.Or(p.Names[c.Cgroup.Path], c.Cgroup.Path), string(c.Knob), string(c.From),
				string(c.To), c.Why})
		}
		out.table(rows)
	}
	for i, note := range p.Notes {
		if i == 0 {
			out.printf("\n")
		}
		out.printf("%s\n", note)
	}
	return out.writeTo(w)
}

// Results are changes that were tried.
type Results struct {
	Schema  string        `json:"schema"`
	Results []plan.Result `json:"results"` // changes that were tried
}

// NewResults wraps results for output.
func NewResults(results []plan.Result) Results {
	if results == nil {
		results = []plan.Result{}
	}
	return Results{ResultsSchema, results}
}

// Text writes one line for each result.
func (r Results) Text(w io.Writer) error {
	var out page
	if len(r.Results) == 0 {
		out.printf("nothing to change\n")
	}
	for _, res := range r.Results {
		out.printf("%s\n", resultLine(res))
	}
	return out.writeTo(w)
}

// resultLine is "/lab/a burst 50ms -> 0s: applied (why)".
func resultLine(r plan.Result) string {
	c := r.Change
	line := c.Cgroup.Path + " " + string(c.Knob) + " " + string(c.From) + " -> " + string(c.To) + ": " +
		string(r.Outcome)
	if r.InForce != "" && r.InForce != c.To {
		line += ", in force " + string(r.InForce)
	}
	if r.Err != "" {
		line += ": " + r.Err
	}
	if c.Why != "" {
		line += " (" + c.Why + ")"
	}
	return Printable(line)
}
