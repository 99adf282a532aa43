package trace

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"plimsoll/internal/cpu"
)

// Schema names the format of the metadata. Fields are added, never renamed, within a version.
const Schema = "plimsoll.trace/v1"

// meta is what an array cannot say.
type meta struct {
	Schema     string     `json:"schema"`
	Unit       string     `json:"unit"`
	Period     int64      `json:"period_ns"`
	Samples    int        `json:"samples"`
	CPUs       float64    `json:"cpus,omitempty"`
	Started    *time.Time `json:"started,omitempty"`
	Aligned    bool       `json:"phase_aligned"`
	Late       int        `json:"late"`
	Containers []metaOf   `json:"containers"`
}

type metaOf struct {
	Name      string    `json:"name"`
	Limit     *float64  `json:"limit_cpus,omitempty"`
	Throttled []float64 `json:"throttled,omitempty"` // not in CSV, which has a column for it
	Changed   bool      `json:"limit_changed,omitempty"`
}

const unit = "share of the machine's CPUs in one period"

// describe makes the metadata of a recording.
func describe(t Trace, throttled bool) meta {
	m := meta{Schema: Schema, Unit: unit, Period: int64(t.Period), Samples: t.Len(), CPUs: t.CPUs, Aligned: t.Aligned,
		Late: t.Late}
	if !t.Started.IsZero() {
		m.Started = &t.Started
	}
	for _, s := range t.Series {
		c := metaOf{Name: s.Name, Changed: s.LimitChanged}
		if s.Limited() {
			c.Limit = &s.Limit
		}
		if throttled {
			c.Throttled = s.Throttled
		}
		m.Containers = append(m.Containers, c)
	}
	return m
}

// parseMeta reads metadata.
func parseMeta(data []byte) (meta, error) {
	var m meta
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("metadata: %w", err)
	}
	if m.Schema != Schema {
		return m, bad("it is of another program or version", "metadata: schema %q, want %q", m.Schema, Schema)
	}
	return m, nil
}

// apply puts metadata and arrays together.
func (m meta) apply(t *Trace) error {
	if m.Samples != t.Len() || len(m.Containers) != len(t.Series) {
		return bad("the file was cut short, or the metadata is another's", "the metadata is of %d periods of %d "+
			"containers, the data of %d of %d", m.Samples, len(m.Containers), t.Len(), len(t.Series))
	}
	t.Period, t.CPUs, t.Aligned, t.Late = time.Duration(m.Period), m.CPUs, m.Aligned, m.Late
	if m.Started != nil {
		t.Started = *m.Started
	}
	for i, c := range m.Containers {
		s := &t.Series[i]
		if c.Name != "" {
			s.Name = c.Name
		}
		s.LimitChanged = c.Changed
		if c.Limit != nil {
			s.Limit = *c.Limit
		}
		if c.Throttled != nil {
			s.Throttled = c.Throttled
		}
	}
	return nil
}

// bare is a recording of which only the arrays are known.
func bare(names []string, columns [][]float64) Trace {
	t := Trace{Period: cpu.DefaultPeriod}
	for i, values := range columns {
		t.Series = append(t.Series, Series{Name: names[i], Limit: math.Inf(1), Used: values})
	}
	return t
}
