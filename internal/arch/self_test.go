package arch

import (
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func parse(t *testing.T, path, text string) source {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return source{path: path, test: strings.HasSuffix(path, "_test.go"), file: file, fset: fset, text: text}
}

// The rules themselves complain of what they forbid, and of nothing else.
func TestRules(t *testing.T) {
	pure := rule{pure: true, imports: []string{"cpu"}}
	for _, c := range []struct {
		name, text string
		check      func(source) []string
		want       []string
	}{
		{"allowed import", `import "plimsoll/internal/cpu"`, func(s source) []string { return checkImports(s, pure) },
			nil},
		{"own import", `import "plimsoll/internal/agent"`, func(s source) []string { return checkImports(s, pure) },
			[]string{"may not import plimsoll/internal/agent"}},
		{"os", `import "os"`, func(s source) []string { return checkImports(s, pure) },
			[]string{"is pure and may not import os"}},
		{"os where it is allowed", `import "os"`, func(s source) []string { return checkImports(s, rule{}) }, nil},
		{"exception", `import "syscall"`, func(s source) []string {
			return checkImports(s, rule{pure: true, except: []string{"syscall"}})
		}, nil},
		{"no exception", `import "syscall"`, func(s source) []string { return checkImports(s, pure) },
			[]string{"is pure and may not import syscall"}},
		{"free", `import "plimsoll/internal/agent"`, func(s source) []string {
			return checkImports(s, rule{free: true})
		}, nil},
		{"kubernetes", `import "k8s.io/client-go/rest"`,
			func(s source) []string { return checkImports(s, rule{free: true}) },
			[]string{"may not import k8s.io/client-go/rest: Kubernetes is an adapter"}},
		{"clock", "import \"time\"\nvar _ = time.Now", func(s source) []string { return checkImports(s, pure) },
			[]string{"line 3: is pure and may not use time.Now: make it an argument"}},
		{"renamed clock", "import t \"time\"\nfunc f() { t.Sleep(1) }",
			func(s source) []string { return checkImports(s, pure) },
			[]string{"line 3: is pure and may not use t.Sleep: make it an argument"}},
		{"dice", "import \"math/rand/v2\"\nfunc f() int { return rand.IntN(2) }",
			func(s source) []string { return checkImports(s, pure) },
			[]string{"line 3: is pure and may not use rand.IntN: make it an argument"}},
		{"seeded dice", "import \"math/rand/v2\"\nfunc f(rand *rand.Rand) int { return rand.IntN(2) }",
			func(s source) []string { return checkImports(s, pure) }, nil},
		{"bare skip", "func f(t *testing.T) { t.Skip(1) }", checkSkips,
			[]string{"line 2: a bare Skip: use cgrouptest's Need, Skip or Elsewhere"}},
		{"method skip", "func f(e e) { e.t.SkipNow() }", checkSkips,
			[]string{"line 2: a bare SkipNow: use cgrouptest's Need, Skip or Elsewhere"}},
		{"explained skip", "import \"plimsoll/internal/cgrouptest\"\nfunc f(t *testing.T) { cgrouptest.Skip(t, \"\") }",
			checkSkips, nil},
		{"init", "func init() {}", checkInit, []string{"line 2: func init"}},
		{"method init", "type T int\nfunc (T) init() {}", checkInit, nil},
		{"long function", "func f() {\n" + strings.Repeat("\n", 69) + "}", checkLength,
			[]string{"f has 71 lines, at most 70"}},
		{"function that fits", "func f() {\n" + strings.Repeat("\n", 68) + "}", checkLength, nil},
		{"wide comment", "\t// " + strings.Repeat("µ", 114), checkWidth,
			[]string{"line 2: 121 columns, at most 120"}},
		{"comment that fits", "\t// " + strings.Repeat("µ", 113), checkWidth, nil},
		{"wide code", "var s = \"" + strings.Repeat("x", 112) + "\"", checkWidth,
			[]string{"line 2: 122 columns, at most 120"}},
		{"wide raw string", "var s = `" + strings.Repeat("x", 130) + "\n" + strings.Repeat("x", 130) + "`", checkWidth,
			nil},
		{"instruction", "//go:generate " + strings.Repeat("x", 130), checkWidth, nil},
		{"long file", strings.Repeat("\n", 400), checkLength, []string{"401 lines, at most 400"}},
	} {
		if diff := cmp.Diff(c.want, c.check(parse(t, "x.go", "package x\n"+c.text))); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.name, diff)
		}
	}
	table := "package x\nfunc f() {\n_ = []int{\n" + strings.Repeat("1,\n", 100) + "}\n}\n"
	if got := checkLength(parse(t, "x_test.go", table)); got != nil {
		t.Errorf("a table in a test: %v", got)
	}
	if got := checkLength(parse(t, "x.go", table)); got == nil {
		t.Error("a table outside of tests must count")
	}
}

// TestShortRule: one short file is found, and those with a reason are not.
func TestShortRule(t *testing.T) {
	p := pkg{dir: "internal/x"}
	for _, name := range []string{"a.go", "b.go", "b_test.go", "c_test.go", "doc.go", "d_kernel_test.go",
		"export_test.go"} {
		s := parse(t, "internal/x/"+name, "package x\n")
		s.test = strings.HasSuffix(name, "_test.go")
		p.files = append(p.files, s)
	}
	want := []string{"internal/x/a.go: 1 lines: it belongs into another file",
		"internal/x/c_test.go: 1 lines: it belongs into another file"}
	if diff := cmp.Diff(want, short(p)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestLabRule: the experiments may import each other.
func TestLabRule(t *testing.T) {
	for path, want := range map[string][]string{
		"cmd/x/x.go":           {"may not import plimsoll/lab/frame: experiments are not shipped"},
		"internal/x/x_test.go": {"may not import plimsoll/lab/frame: experiments are not shipped"},
		"lab/x/x.go":           nil,
	} {
		if diff := cmp.Diff(want, checkLab(parse(t, path, `package x; import "plimsoll/lab/frame"`))); diff != "" {
			t.Errorf("%s: -want +got\n%s", path, diff)
		}
	}
}

func TestStateRule(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{`var ErrX = errors.New("x")`, nil},
		{`var re = regexp.MustCompile("x")`, nil},
		{`var table = []int{1, 2}`, nil},
		{`var _ fmt.Stringer = T(0)`, nil},
		{"//go:embed x\nvar page string", nil},
		{`var count int`,
			[]string{"x.go:2: package variable count is neither an error, a regular expression nor a table"}},
		{`var now = time.Now`,
			[]string{"x.go:2: package variable now is neither an error, a regular expression nor a table"}},
		{`var m = sync.OnceValue(f)`,
			[]string{"x.go:2: package variable m is neither an error, a regular expression nor a table"}},
		{"var table = []int{1}\nfunc f() { table[0] = 2 }", []string{"x.go: assigns to the package variable table"}},
		{"var table = []int{1}\nfunc f() { g(&table) }", []string{"x.go: assigns to the package variable table"}},
		{"var table = map[int]int{}\nfunc f() { delete(table, 1) }",
			[]string{"x.go: assigns to the package variable table"}},
		{"var table = []int{1}\nfunc f() { table := 5; table++ }", nil},
	} {
		if diff := cmp.Diff(c.want, checkState([]source{parse(t, "x.go", "package x\n"+c.text)})); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.text, diff)
		}
	}
}
