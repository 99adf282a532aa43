// Package usage explains what is wrong with flags and arguments, in the place of the words of cobra and of Go's
// functions, and says where to read of them.
package usage

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plimsoll/internal/hint"
)

// Explain adds to what cobra says of flags and arguments where to read of them, and that the caller is to blame.
func Explain(root *cobra.Command) {
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		advice, what := explainFlag(err)
		return hint.Misuse(hint.With(what, cmp.Or(advice, "`"+cmd.CommandPath()+" --help` lists the flags")))
	})
	for _, cmd := range root.Commands() {
		Explain(cmd)
		if check := cmd.Args; check != nil {
			cmd.Args = func(cmd *cobra.Command, args []string) error {
				return hint.Misuse(hint.With(check(cmd, args), call(cmd, args)))
			}
		}
	}
}

// explainFlag says what is wrong with the value of a flag, without the words of the functions that read it.
func explainFlag(err error) (advice string, what error) {
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return "", err
	}
	name, value := "--"+bad.GetFlag().Name, bad.GetValue()
	switch bad.GetFlag().Value.Type() {
	case "duration":
		return "a number with its unit, such as 500ms, 30s, 10m or 1h30m",
			fmt.Errorf("%s %q is not a time", name, value)
	case "int", "int64":
		return "", fmt.Errorf("%s %q is not a whole number", name, value)
	case "uint64":
		return "", fmt.Errorf("%s %q is not a whole number from 0 on", name, value)
	case "float64":
		return "such as 0.5", fmt.Errorf("%s %q is not a number", name, value)
	case "bool":
		return "", fmt.Errorf("%s=%q is neither true nor false", name, value)
	}
	return "", fmt.Errorf("%s: %w", name, bad.Unwrap())
}

// call is how a command is called, or which of its own commands may be meant, or where these are listed.
func call(cmd *cobra.Command, args []string) string {
	if cmd.HasSubCommands() {
		cmd.SuggestionsMinimumDistance = 2 // as of the root's
		if near := cmd.SuggestionsFor(strings.Join(args, " ")); len(near) > 0 {
			return "did you mean `" + cmd.CommandPath() + " " + near[0] + "`?"
		}
		return "`" + cmd.CommandPath() + " --help` lists the commands"
	}
	return cmd.UseLine()
}

// Suggestion splits cobra's error of an unknown command: "...\n\nDid you mean this?\n\tstatus\n".
func Suggestion(err error) (what, near string) {
	what, list, ok := strings.Cut(err.Error(), "\n\nDid you mean this?\n")
	if names := strings.Fields(list); ok && len(names) > 0 && UnknownCommand(err) {
		return what, names[0]
	}
	return err.Error(), ""
}

// UnknownCommand knows cobra's error, which has no type.
func UnknownCommand(err error) bool { return strings.HasPrefix(err.Error(), "unknown command") }

// FlagMissing knows cobra's error of a flag that is required.
func FlagMissing(err error) bool { return strings.HasPrefix(err.Error(), "required flag(s)") }
