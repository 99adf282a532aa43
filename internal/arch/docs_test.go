package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// longestCell is the most characters in a cell of a table: a longer text is read as a paragraph or a list.
const longestCell = 200

// longestRunbook is the most lines of docs/RUNBOOK.md, which is read at 3 a.m.
const longestRunbook = 150

// longestProse is the most characters in a line of a paragraph or a list, so that the source reads well too.
const longestProse = 120

// TestProseIsWrapped reads all documents. Tables, blocks of code, pictures and what is generated keep their lines.
func TestProseIsWrapped(t *testing.T) {
	for _, file := range documents(t) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := regexp.MustCompile("(?s)```.*?```|<!-- (\\w+): begin -->.*?<!-- \\w+: end -->").ReplaceAllString(
			string(data), "")
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			breaks := strings.Contains(strings.TrimSpace(line), " ") && !strings.HasPrefix(line, "    ") &&
				!strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "![")
			if n := utf8.RuneCountInString(line); breaks && n > longestProse {
				t.Errorf("%s: a line has %d characters, more than %d: %.60s...", file, n, longestProse, line)
			}
		}
	}
}

// documents are README.md, CONTRIBUTING.md and what is in docs.
func documents(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d documents, %v", len(files), err)
	}
	return append(files, "../../README.md", "../../CONTRIBUTING.md")
}

// TestTableCellsAreShort reads the tables of README.md and of docs.
func TestTableCellsAreShort(t *testing.T) {
	tables := 0
	for _, file := range documents(t) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		rows, long := longCells(string(data))
		tables += rows
		for _, cell := range long {
			t.Errorf("%s: a cell has %d characters, more than %d: %.60s...", file, utf8.RuneCountInString(cell),
				longestCell, cell)
		}
	}
	if tables < 100 {
		t.Errorf("only %d rows of tables were read", tables)
	}
}

// TestLongCellIsFound: a cell of 201 characters is found, one of 200 and a row in a code block are not.
func TestLongCellIsFound(t *testing.T) {
	row := func(n int) string { return "| a | " + strings.Repeat("x", n) + " |\n" }
	if _, long := longCells(row(longestCell) + "```\n" + row(longestCell+1) + "```\n"); len(long) != 0 {
		t.Errorf("found %d", len(long))
	}
	if _, long := longCells(row(longestCell + 1)); len(long) != 1 {
		t.Errorf("found %d, want 1", len(long))
	}
}

// TestRunbookIsShort keeps the page for 3 a.m. short.
func TestRunbookIsShort(t *testing.T) {
	data, err := os.ReadFile("../../docs/RUNBOOK.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(data), "\n"); n > longestRunbook {
		t.Errorf("docs/RUNBOOK.md has %d lines, more than %d", n, longestRunbook)
	}
}

// TestLinksBetweenDocuments: a link to a file of the repository leads to one, and its heading is there. Each picture of
// the page is shown somewhere.
func TestLinksBetweenDocuments(t *testing.T) {
	links, linked := 0, map[string]bool{}
	for _, file := range documents(t) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(string(data), -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			links++
			path, heading, _ := strings.Cut(link[1], "#")
			target := file
			if path != "" {
				target = filepath.Join(filepath.Dir(file), path)
			}
			linked[target] = true
			text, err := os.ReadFile(target)
			if info, statErr := os.Stat(target); statErr != nil {
				t.Errorf("%s: %s leads nowhere", file, link[1])
			} else if heading != "" && (err != nil || info.IsDir() || !hasHeading(string(text), heading)) {
				t.Errorf("%s: %s: no such heading", file, link[1])
			}
		}
	}
	if links < 50 {
		t.Errorf("only %d links were read", links)
	}
	pictures, err := filepath.Glob("../../docs/figures/*.png")
	if err != nil || len(pictures) == 0 {
		t.Errorf("%d pictures, %v", len(pictures), err)
	}
	for _, file := range pictures {
		if !linked[file] {
			t.Errorf("%s: no document shows it", file)
		}
	}
}

// TestPackagesAreDescribed: each package has its place in the table of docs/ARCHITECTURE.md, and nothing else has.
func TestPackagesAreDescribed(t *testing.T) {
	data, err := os.ReadFile("../../docs/ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(data), "\n| package | what it is |\n|---|---|\n")
	text, _, _ = strings.Cut(text, "\n\n")
	missing := rules()
	for line := range strings.Lines(text) {
		names, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |")
		for name := range strings.SplitSeq(names, ", ") {
			dir := name
			if _, ok := missing[dir]; !ok {
				dir = "internal/" + name
			}
			if _, ok := missing[dir]; !ok {
				t.Errorf("docs/ARCHITECTURE.md: %s is there twice, or is no package", name)
			}
			delete(missing, dir)
		}
	}
	for dir := range missing {
		t.Errorf("docs/ARCHITECTURE.md: %s is missing", dir)
	}
}

// TestInstalledPolicy: README says which policy the configuration has that it installs.
func TestInstalledPolicy(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, install, _ := strings.Cut(string(readme), "\n## Install\n")
	for _, file := range []string{"../../deploy/systemd/config.yaml", "../../deploy/helm/plimsoll/values.yaml"} {
		config, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		policy := regexp.MustCompile(`(?m)^ +policy: (\w+)$`).FindStringSubmatch(string(config))
		if policy == nil || !strings.Contains(install, "Both install the policy `"+policy[1]+"`") {
			t.Errorf("README, Install: the policy of %s is %q", file, policy)
		}
	}
}

// TestHelmCommands: each command of Helm that a document shows names its namespace, and `helm template` leaves out the
// hooks, which kubectl would apply like everything else. With --reuse-values an upgrade lacks the new chart's defaults.
func TestHelmCommands(t *testing.T) {
	commands := 0
	for _, file := range documents(t) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range regexp.MustCompile("helm (template|install|upgrade|uninstall) [^`\n]+").FindAllString(
			string(data), -1) {
			commands++
			if !strings.Contains(c, " --namespace ") || strings.Contains(c, " --reuse-values") ||
				strings.HasPrefix(c, "helm template") && !strings.Contains(c, " --no-hooks ") {
				t.Errorf("%s: %s", file, c)
			}
		}
	}
	if commands < 6 {
		t.Errorf("only %d commands were read", commands)
	}
}

// hasHeading says whether a document has the heading with this anchor, spelled as GitHub does.
func hasHeading(text, anchor string) bool {
	for _, h := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		plain := regexp.MustCompile(`[^\p{L}\p{N}\s_-]`).ReplaceAllString(strings.ToLower(h[1]), "")
		if strings.ReplaceAll(plain, " ", "-") == anchor {
			return true
		}
	}
	return false
}

// longCells are the cells of all tables that are too long, and how many rows there are. Code blocks are no tables.
func longCells(text string) (rows int, long []string) {
	code := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		if code || !strings.HasPrefix(line, "|") {
			continue
		}
		rows++
		for cell := range strings.SplitSeq(strings.ReplaceAll(line, `\|`, "/"), "|") {
			if cell = strings.TrimSpace(cell); utf8.RuneCountInString(cell) > longestCell {
				long = append(long, cell)
			}
		}
	}
	return rows, long
}

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
