package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"plimsoll/internal/cpu"
	"plimsoll/internal/plan"
	"plimsoll/internal/printable"
)

// WriteJSON writes a value of this package for programs: indented, one document, a newline at the end. A status is
// written container by container: as a whole its text would be in memory several times. What does not print is escaped,
// for people read it on terminals, too.
func WriteJSON(w io.Writer, v any) error {
	w = printable.JSON(w)
	var err error
	if s, ok := v.(Status); ok && len(s.Containers) > 0 {
		err = writeStatus(w, s)
	} else {
		err = encoder(w, "").Encode(v)
	}
	if err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}

func encoder(w io.Writer, prefix string) *json.Encoder {
	enc := json.NewEncoder(w)
	enc.SetIndent(prefix, "  ")
	enc.SetEscapeHTML(false)
	return enc
}

// writeStatus writes what WriteJSON does, and leaves little garbage: each collection of it may delay a refill. The
// empty list of containers occurs once at this depth.
func writeStatus(w io.Writer, s Status) error {
	const empty, depth = "\n  \"containers\": []", "    "
	list := s.Containers
	s.Containers = nil
	var b bytes.Buffer
	if err := encoder(&b, "").Encode(s); err != nil {
		return err
	}
	before, after, _ := strings.Cut(b.String(), empty)
	if _, err := io.WriteString(w, before+strings.TrimSuffix(empty, "]")); err != nil {
		return err
	}
	separator, each, of := "\n"+depth, containerJSON{}, encoder(&b, depth)
	for _, c := range list {
		b.Reset()
		b.WriteString(separator)
		each.set(c)
		if err := of.Encode(&each); err != nil {
			return err
		}
		if _, err := w.Write(bytes.TrimSuffix(b.Bytes(), []byte("\n"))); err != nil {
			return err
		}
		separator = ",\n" + depth
	}
	_, err := io.WriteString(w, "\n  ]"+after)
	return err
}

type plainStatus Status

// MarshalJSON writes what is empty as an empty list or object, never as null.
func (s Status) MarshalJSON() ([]byte, error) {
	if s.Containers == nil {
		s.Containers = []Container{}
	}
	if s.Writes.Results == nil {
		s.Writes.Results = map[plan.Knob]map[plan.Outcome]int64{}
	}
	if s.Writes.Decisions == nil {
		s.Writes.Decisions = map[string]int64{}
	}
	return json.Marshal(plainStatus(s))
}

// In JSON an unlimited quota is null: a float64 cannot hold the number that represents it inside the program exactly,
// and many readers of JSON know no other number.

func finite(d time.Duration) *time.Duration {
	if d == cpu.Unlimited {
		return nil
	}
	return &d
}

func unlimited(d *time.Duration) time.Duration {
	if d == nil {
		return cpu.Unlimited
	}
	return *d
}

type plainContainer Container

// containerJSON is a container with null for what is unlimited.
type containerJSON struct {
	plainContainer
	Limit *time.Duration `json:"limit_ns"`
	Quota knobJSON       `json:"quota"`
	Burst knobJSON       `json:"burst"`
}

type knobJSON struct {
	Knob
	Original  *time.Duration `json:"original_ns"`
	Requested *time.Duration `json:"requested_ns"`
	InForce   *time.Duration `json:"in_force_ns"`
}

func (j *containerJSON) set(c Container) {
	*j = containerJSON{plainContainer(c), finite(c.Limit), c.Quota.json(), c.Burst.json()}
}

func (k Knob) json() knobJSON {
	return knobJSON{k, finite(k.Original), finite(k.Requested), finite(k.InForce)}
}

func (j knobJSON) knob() Knob {
	k := j.Knob
	k.Original, k.Requested, k.InForce = unlimited(j.Original), unlimited(j.Requested), unlimited(j.InForce)
	return k
}

// MarshalJSON implements json.Marshaler.
func (c Container) MarshalJSON() ([]byte, error) {
	var j containerJSON
	j.set(c)
	return json.Marshal(&j)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (c *Container) UnmarshalJSON(data []byte) error {
	var j containerJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	*c = Container(j.plainContainer)
	c.Limit, c.Quota, c.Burst = unlimited(j.Limit), j.Quota.knob(), j.Burst.knob()
	return nil
}
