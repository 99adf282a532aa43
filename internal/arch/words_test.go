package arch

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// secondNames are names of things that docs/GLOSSARY.md calls otherwise.
func secondNames() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		"exclusive CPUs": regexp.MustCompile(`\bCPUs? of (its|their) own\b`),
		"minSharedCPUs":  regexp.MustCompile(`\bshare pool's floor\b|\breserve\.floor\b`),
		"stall":          regexp.MustCompile(`\bmost-pause\b|\bpause_ns\b`),
	}
}

// TestOneName: what has a name in the glossary has no other one in code, charts and documents.
func TestOneName(t *testing.T) {
	for _, file := range files(t, ".go", ".md", ".yaml", ".tpl", ".json", ".js") {
		if strings.HasSuffix(file, "arch/words_test.go") {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := regexp.MustCompile(`\s+(// )?`).ReplaceAllString(string(data), " ")
		for name, second := range secondNames() {
			if found := second.FindString(text); found != "" {
				t.Errorf("%s: %q: its name is %q", file, found, name)
			}
		}
	}
}
