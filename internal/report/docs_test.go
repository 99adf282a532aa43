package report

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMetricsAreDocumented keeps the table of docs/REFERENCE.md complete and true: every metric with its type, and
// none that is not there.
func TestMetricsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/REFERENCE.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(plimsoll_[a-z0-9_]+)(?:\\{[a-z,]+\\})?` \\| (counter|gauge|histogram|summary) \\|").FindAllStringSubmatch(string(text), -1) {
		documented[row[1]] = row[2]
	}
	families, err := registry(t, func() (Status, error) { return sample(), nil }).Gather()
	if err != nil {
		t.Fatal(err)
	}
	exposed := map[string]string{}
	for _, f := range families {
		exposed[f.GetName()] = strings.ToLower(f.GetType().String())
	}
	if diff := cmp.Diff(exposed, documented); diff != "" {
		t.Errorf("docs/REFERENCE.md (-exposed +documented):\n%s", diff)
	}
}

// TestHelpStandsAlone: a HELP text is read by itself, in a list that is sorted by name. It may not lean on a neighbour.
func TestHelpStandsAlone(t *testing.T) {
	families, err := registry(t, func() (Status, error) { return sample(), nil }).Gather()
	if err != nil {
		t.Fatal(err)
	}
	leans := regexp.MustCompile(`(?i)\b(of these|of it|of the same|those|it is to be|that it was|load it|of late|what (it|they))\b`)
	for _, f := range families {
		if help := f.GetHelp(); leans.MatchString(help) || len(strings.Fields(help)) < 3 || !strings.HasSuffix(help, ".") {
			t.Errorf("%s: %q", f.GetName(), help)
		}
	}
}
