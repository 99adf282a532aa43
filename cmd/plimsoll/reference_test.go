package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plimsoll/internal/golden"
)

const referenceFile = "../../docs/REFERENCE.md"

// TestFlagsAreDocumented: docs/REFERENCE.md has each command that people see, with each of its flags and its default.
func TestFlagsAreDocumented(t *testing.T) {
	var want strings.Builder
	for _, root := range []*cobra.Command{newRoot(), newPlugin()} {
		writeFlags(&want, root)
	}
	if n := strings.Count(want.String(), "\n* `--"); n < 50 {
		t.Errorf("only %d flags", n)
	}
	golden.Part(t, referenceFile, "flags", want.String())
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
