package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write the generated parts of docs/REFERENCE.md")

// TestFlagsAreDocumented: docs/REFERENCE.md has each command that people see, with each of its flags and its default.
func TestFlagsAreDocumented(t *testing.T) {
	var want strings.Builder
	for _, root := range []*cobra.Command{newRoot(), newPlugin()} {
		writeFlags(&want, root)
	}
	if n := strings.Count(want.String(), "\n* `--"); n < 50 {
		t.Errorf("only %d flags", n)
	}
	generated(t, "flags", want.String())
}

// generated compares a part of docs/REFERENCE.md, or with -update writes it.
func generated(t *testing.T, part, want string) {
	t.Helper()
	const file = "../../docs/REFERENCE.md"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := fmt.Sprintf("<!-- %s: begin -->\n", part), fmt.Sprintf("<!-- %s: end -->\n", part)
	before, rest, found := strings.Cut(string(data), begin)
	have, after, closed := strings.Cut(rest, end)
	switch {
	case !found || !closed:
		t.Fatalf("%s has no place for %s", file, part)
	case have == want:
	case !*update:
		t.Fatalf("%s (-documented +made):\n%s\nhint: go test ./cmd/plimsoll -run %s -update", file, gocmp.Diff(have, want), t.Name())
	default:
		if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// writeFlags writes a command and the commands below it, as Markdown.
func writeFlags(out *strings.Builder, cmd *cobra.Command) {
	if cmd.Hidden || cmd.Name() == "help" || cmd.Name() == "completion" {
		return
	}
	fmt.Fprintf(out, "\n### %s\n\n%s.\n", cmd.CommandPath(), strings.TrimSuffix(cmd.Short, "."))
	first := true
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		if first {
			out.WriteString("\n")
			first = false
		}
		kind, text := pflag.UnquoteUsage(f)
		name := strings.TrimSpace("--" + f.Name + " " + kind)
		if !slices.Contains([]string{"", "false", "[]", "0", "0s"}, f.DefValue) {
			text += fmt.Sprintf(" (default `%s`)", f.DefValue)
		}
		fmt.Fprintf(out, "* `%s`: %s\n", name, text)
	})
	for _, child := range cmd.Commands() {
		writeFlags(out, child)
	}
}
