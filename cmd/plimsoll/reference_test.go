package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write the flags into docs/REFERENCE.md")

// TestFlagsAreDocumented: docs/REFERENCE.md has each command that people see, with each of its flags and its default.
func TestFlagsAreDocumented(t *testing.T) {
	const file, begin, end = "../../docs/REFERENCE.md", "<!-- flags: begin -->\n", "<!-- flags: end -->\n"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(data), begin)
	have, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for flags", file)
	}
	var want strings.Builder
	for _, root := range []*cobra.Command{newRoot(), newPlugin()} {
		writeFlags(&want, root)
	}
	if n := strings.Count(want.String(), "\n* `--"); n < 50 {
		t.Errorf("only %d flags", n)
	}
	if have == want.String() {
		return
	}
	if !*update {
		t.Fatalf("%s does not have the flags of the commands; hint: go test ./cmd/plimsoll -run %s -update", file, t.Name())
	}
	if err := os.WriteFile(file, []byte(before+begin+want.String()+end+after), 0o644); err != nil {
		t.Fatal(err)
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
