package config

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// TestLongAnnotations: what is longer than any honest annotation is refused before it is read, says so, and leaves the
// last value in force.
func TestLongAnnotations(t *testing.T) {
	pad := func(text string, length int) string { return text + strings.Repeat(" ", length-len(text)) }
	last := strategy.Patch{Policy: of(strategy.CPUBurstOnly)}
	const good = `{"policy": "auto"}`
	p, _, bad := ParseAnnotations("Pod default/web", map[string]string{Annotation: pad(good, MaxAnnotation)}, last)
	if len(bad) > 0 || *p.Policy != strategy.Auto {
		t.Errorf("the longest: %v", messages(bad))
	}
	for _, length := range []int{MaxAnnotation + 1, 256 << 10} {
		for _, key := range []string{Annotation, OldAnnotation} {
			p, old, bad := ParseAnnotations("Pod default/web", map[string]string{key: pad(good, length)}, last)
			want := []string{"Pod default/web: " + key +
				": is longer than 4096 bytes: not read (the fields of docs/CONFIG.md take a few hundred)"}
			if diff := cmp.Diff(want, messages(bad)); diff != "" || *p.Policy != strategy.CPUBurstOnly ||
				old != (key == OldAnnotation) {
				t.Errorf("%d bytes: %v, old %v, %s", length, *p.Policy, old, diff)
			}
		}
		enable := true
		q, bad := ParseQOSAnnotation("o", pad(`{"enable": false}`, length), strategy.CPUQOSPatch{Enable: &enable})
		if len(bad) != 1 || bad[0].Key != QOSAnnotation || !*q.Enable {
			t.Errorf("%d bytes: %v, %v", length, messages(bad), q)
		}
		e, bad := ParseExclusive("o", pad("strict", length), workload.ExclusiveYes)
		if len(bad) != 1 || bad[0].Key != ExclusiveAnnotation || !strings.HasSuffix(bad[0].Msg, "bytes: not read") ||
			e != workload.ExclusiveYes {
			t.Errorf("%d bytes: %v, %v", length, messages(bad), e)
		}
	}
}

// TestFaultsAreBounded: of the text of an annotation only short excerpts are shown, which print, and only some faults.
func TestFaultsAreBounded(t *testing.T) {
	const trick = "\x1b[2J\u202e\u009b%s%n\n<script>"
	quoted := strings.NewReplacer("\x1b", `\u001b`, "\n", `\n`)
	for name, text := range map[string]string{
		"a long word":      `{"policy": "` + strings.Repeat("a", 4000) + `"}`,
		"a tricky word":    `{"policy": "` + quoted.Replace(trick) + `"}`,
		"a tricky value":   `{"cpuBurstPercent": "` + quoted.Replace(trick) + strings.Repeat("ü", 1000) + `"}`,
		"lines":            "{\"cpuBurstPercent\": [\n\n\n1\u202e]}",
		"no JSON":          trick + strings.Repeat("\x1b", 1000),
		"many faults":      "{" + strings.Repeat(`"policy": "no", `, 200) + `"policy": "no"}`,
		"a list of faults": `["` + strings.Repeat("x", 4000) + `"]`,
	} {
		_, _, bad := ParseAnnotations("o", map[string]string{Annotation: text}, strategy.Patch{})
		if len(bad) == 0 || len(bad) > mostFaults {
			t.Errorf("%s: %d faults", name, len(bad))
		}
		bounded(t, name, bad)
		if name == "a long word" && !strings.HasSuffix(bad[0].Msg,
			`..." is not one of none, cpuBurstOnly, cfsQuotaBurstOnly, auto`) {
			t.Errorf("it does not say what is wrong: %s", bad[0].Msg)
		}
	}
	_, bad := ParseExclusive("o", trick+strings.Repeat("e", 3000), "")
	bounded(t, "exclusive", bad)
	if _, bad = ParseExclusive("o", "tru", ""); len(bad) != 1 || bad[0].Hint != "did you mean true?" {
		t.Errorf("a short word: %v", messages(bad))
	}
	var selectors []string
	for i := range 100 {
		selectors = append(selectors, fmt.Sprintf(`{"name": "%d", "nodeSelector": {"matchLabels": {"%s": %d}}}`, i,
			quoted.Replace(trick), i))
	}
	_, bad = ParseCluster("o", `{"nodeStrategies": [`+strings.Join(selectors, ",")+`]}`, Cluster{})
	if n := len(bad); n != mostFaults || bad[n-1].Msg != "more faults than these" {
		t.Errorf("%d faults, the last: %v", n, bad[n-1])
	}
	bounded(t, "selectors", bad)
}

// TestRejectedIsBounded: a fault has a bound of its own, whatever bounds those who find faults keep.
func TestRejectedIsBounded(t *testing.T) {
	long := strings.Repeat("a", 4000)
	r := faultf(long, "%s", long).in("o", "k", long)
	if len(r.Field) != longestField || len(r.Msg) != longestFault || len(r.Hint) != longestFault {
		t.Errorf("a field of %d bytes, a message of %d, a hint of %d", len(r.Field), len(r.Msg), len(r.Hint))
	}
}

func bounded(t *testing.T, name string, bad []*Rejected) {
	t.Helper()
	for _, r := range bad {
		text := r.Error()
		if len(text) > 100+longestField+2*longestFault ||
			strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%s: %d bytes: %q", name, len(text), text)
		}
	}
}

// TestHintsAreForShortWords: the search for a near word takes time in proportion to what was written.
func TestHintsAreForShortWords(t *testing.T) {
	words := []string{strings.Repeat("a", longestWord)}
	if got := didYouMean(strings.Repeat("a", longestWord-1)+"b", words); got == "" {
		t.Error("no hint for the longest word")
	}
	if got := didYouMean(strings.Repeat("a", longestWord+1), words); got != "" {
		t.Errorf("%d bytes: %s", longestWord+1, got)
	}
}
