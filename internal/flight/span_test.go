package flight

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// covered are spans that begin and end so long after t0.
func covered(bounds ...time.Duration) (list Spans) {
	for i := 0; i < len(bounds); i += 2 {
		list = append(list, Span{t0.Add(bounds[i]).UnixMilli(), t0.Add(bounds[i+1]).UnixMilli()})
	}
	return list
}

func TestUnion(t *testing.T) {
	for name, c := range map[string]struct{ a, b, want Spans }{
		"nothing":          {nil, Spans{{3, 3}}, nil},
		"one after other":  {Spans{{0, 10}}, Spans{{10, 20}}, Spans{{0, 20}}},
		"a gap":            {Spans{{11, 20}}, Spans{{0, 10}}, Spans{{0, 10}, {11, 20}}},
		"one within other": {Spans{{0, 20}}, Spans{{5, 6}}, Spans{{0, 20}}},
		"a gap is filled":  {Spans{{0, 10}, {20, 30}}, Spans{{9, 21}}, Spans{{0, 30}}},
	} {
		if diff := cmp.Diff(c.want, Union(c.a, c.b)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestWithin(t *testing.T) {
	s := Spans{{0, 10}, {20, 30}}
	if diff := cmp.Diff(Spans{{5, 10}, {20, 25}}, s.Within(5, 25)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := s.Within(10, 20); got != nil {
		t.Errorf("the gap: %v", got)
	}
	if got := s.Length(); got != 20*time.Millisecond {
		t.Errorf("%v", got)
	}
}

func TestSpell(t *testing.T) {
	s := Spans{{90_000, 181_000}, {300_000, 360_000}}
	if got := s.minutes().spell(minuteMs); got != "1+3 5+1" {
		t.Errorf("minutes: %q", got)
	}
	if got := s.spell(1); got != "90000+91000 300000+60000" {
		t.Errorf("exact: %q", got)
	}
}

func TestParseSpans(t *testing.T) {
	for _, text := range []string{"1", "x+1", "1+0", "-1+1", "1+9223372036854775807", "1+1 99999999999999+1"} {
		if list, err := parseSpans("k", text, minuteMs); !errors.Is(err, ErrDamaged) {
			t.Errorf("%q: %v %v", text, list, err)
		}
	}
}

// FuzzParseSpans: what is read is written as it was.
func FuzzParseSpans(f *testing.F) {
	f.Add("29401630+10 29401700+2")
	f.Fuzz(func(t *testing.T, text string) {
		for _, unit := range []int64{1, minuteMs} {
			list, err := parseSpans("k", text, unit)
			if err != nil {
				continue
			}
			again, err := parseSpans("k", list.spell(unit), unit)
			if diff := cmp.Diff(list, again); diff != "" || err != nil {
				t.Errorf("%q: %v\n%s", text, err, diff)
			}
		}
	})
}
