package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// called finds the commands of a document: in blocks of code, after a prompt or not, and in the midst of a line between
// backquotes. What they are called with goes up to the end, a comment, or another command.
var called = regexp.MustCompile("(?m)(?:^(?:    )?(?:[$#] )?(?:sudo )?|`|&& |; |\\| |exec POD -- /|bin/)((?:kubectl " +
	")?plimsoll) ([^`#|&;>\\n]*)")

var plain = regexp.MustCompile("^[a-z-]+$") // the name of a command

// TestCommandsInDocs: each command that a document shows exists, with its flags.
func TestCommandsInDocs(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, file := range append(files, "../../README.md", "../../CONTRIBUTING.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range called.FindAllStringSubmatch(string(text), -1) {
			root := newRoot()
			if m[1] != "plimsoll" {
				root = newPlugin()
			}
			if wrong := unknown(root, strings.Fields(m[2])); wrong != "" {
				t.Errorf("%s: %s %s: there is no %s", filepath.Base(file), m[1], m[2], wrong)
			}
			seen++
		}
	}
	if seen < 200 {
		t.Errorf("only %d commands", seen)
	}
}

// unknown is the first word that is neither a command, nor a flag of the command before it, nor an argument.
func unknown(cmd *cobra.Command, words []string) string {
	for _, word := range words {
		switch name, isFlag := strings.CutPrefix(word, "--"); {
		case isFlag:
			name, _, _ = strings.Cut(name, "=")
			if name = strings.TrimRight(name, "].,:)"); flagOf(cmd, name) == nil && name != "help" &&
				name != "version" && name != "" {
				return word
			}
		case cmd.HasSubCommands() && !plain.MatchString(word):
			return "" // what the program prints, or COMMAND
		case cmd.HasSubCommands():
			child, _, err := cmd.Find([]string{word})
			if err != nil || child == cmd {
				return word
			}
			cmd = child
		}
	}
	return ""
}

func flagOf(cmd *cobra.Command, name string) *pflag.Flag {
	if f := cmd.Flags().Lookup(name); f != nil {
		return f
	}
	return cmd.InheritedFlags().Lookup(name)
}
