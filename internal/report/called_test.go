package report

import (
	"bytes"
	"strings"
	"testing"
)

// TestCalled: a command in backticks gets the flags after its arguments, and nothing else does.
func TestCalled(t *testing.T) {
	for text, want := range map[string]string{
		"see `plimsoll status`, or `plimsoll restore --to-spec`": "see `plimsoll status -s`, or `plimsoll restore " +
			"--to-spec -s`",
		"plimsoll stands still; `kill -9` it":  "plimsoll stands still; `kill -9` it",
		"`kubectl plimsoll top` and `plimsoll": "`kubectl plimsoll top` and `plimsoll",
		"":                                     "",
	} {
		if got := Called(text, "-s"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if got := Called(text, ""); got != text {
			t.Errorf("without flags: %q", got)
		}
	}
}

// TestReached: the commands that a status names find its agent.
func TestReached(t *testing.T) {
	s := Status{Mode: Held,
		Problems: []string{"left (hint: `plimsoll restore` puts it back)"}}.Reached("--state-dir /run/lab")
	var b bytes.Buffer
	if err := s.Text(&b); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"`plimsoll resume --state-dir /run/lab`",
		"`plimsoll restore --state-dir /run/lab`"} {
		if !strings.Contains(b.String(), command) {
			t.Errorf("no %s in %s", command, &b)
		}
	}
}

// TestReachedByADiagnosis: so do those of its advice.
func TestReachedByADiagnosis(t *testing.T) {
	const advice, want = "let it burst: `plimsoll run --policy auto`", "let it burst: `plimsoll run --policy auto " +
		"--state-dir /run/lab`"
	d := Diagnosis{Containers: []Diagnosed{{Next: advice},
		{Parallelism: &Parallelism{Next: advice}}}}.Reached("--state-dir /run/lab")
	if got := d.Containers; got[0].Next != want || got[1].Parallelism.Next != want {
		t.Errorf("%q, %q", got[0].Next, got[1].Parallelism.Next)
	}
}
