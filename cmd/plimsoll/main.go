// Command plimsoll lets containers use the CPU that they saved up or that nobody needs, up to the line where a
// neighbour would be hurt.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plimsoll/internal/guide"
	"plimsoll/internal/hint"
	"plimsoll/internal/lock"
	"plimsoll/internal/node"
	"plimsoll/internal/report"
	"plimsoll/internal/usage"
)

// version is set by the linker (-X main.version=...).
var version = "dev"

// globals are the flags of every command.
type globals struct {
	node.Dirs
	set *pflag.FlagSet // of them; nil: they are as without a word
}

// withHint attaches advice to an error.
func withHint(err error, advice string) error { return hint.With(err, advice) }

func main() {
	root, name := newRoot(), "plimsoll"
	if asPlugin(os.Args[0]) {
		root, name = newPlugin(), "kubectl plimsoll"
	}
	if err := root.Execute(); err != nil {
		complain(os.Stderr, name, flagsOf(root.PersistentFlags()), err)
		os.Exit(exitCode(err))
	}
}

// flags are those that another command needs to find the same agent and the same control groups.
func (g *globals) flags() string { return flagsOf(g.set) }

// flagsOf spells the flags of a set that have other values than without a word.
func flagsOf(set *pflag.FlagSet) string {
	var list []string
	set.VisitAll(func(f *pflag.Flag) {
		if v := f.Value.String(); !f.Hidden && v != f.DefValue && v != "" {
			list = append(list, "--"+f.Name+" "+hint.Word(v))
		}
	})
	return strings.Join(list, " ")
}

// advise prints a hint for a person. The commands in it find the same agent.
func (g *globals) advise(w io.Writer, text string) {
	fmt.Fprintln(w, "plimsoll: hint:", report.Printable(report.Called(text, g.flags())))
}

// complain prints an error and its hint for a person. Names in an error cannot control the terminal, and the commands
// in the hint get the flags, and the name by which this program was called.
func complain(w io.Writer, name, flags string, err error) {
	say := func(kind, text string) {
		lines := strings.Split(text, "\n")
		for i, line := range lines {
			lines[i] = report.Printable(line)
		}
		fmt.Fprintf(w, "%s: %s: %s\n", name, kind, strings.Join(lines, "\n"))
	}
	what, near := usage.Suggestion(err)
	say("error", what)
	var h interface{ Hint() string }
	switch {
	case errors.As(err, &h) && h.Hint() != "":
		say("hint", strings.ReplaceAll(report.Called(h.Hint(), flags), "`plimsoll ", "`"+name+" "))
	case near != "":
		say("hint", "did you mean `"+name+" "+near+"`?")
	case usage.UnknownCommand(err):
		say("hint", "`"+name+" help` lists the commands")
	}
}

func newRoot() *cobra.Command {
	g := &globals{}
	root := &cobra.Command{
		Use: "plimsoll",
		Short: "Let containers use the CPU that they saved up or that nobody needs, up to the line where a " +
			"neighbour would be hurt",
		Example: `  plimsoll plan --policy auto --include '/lab/*'    # what it would change
  plimsoll run --policy auto --include '/lab/*'     # until it is stopped: then everything is put back
  plimsoll status                                   # what is changed now
  plimsoll diagnose default/web/nginx --for 30s     # why is it slow?
  plimsoll restore                                  # everything put back, and nothing more written`,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := within(cmd, askTimeout)
			defer cancel()
			state, steps := guide.Next(g.facts(ctx))
			for i := range steps {
				steps[i].Command = strings.TrimSuffix(steps[i].Command+" "+g.flags(), " ")
			}
			_, err := io.WriteString(cmd.OutOrStdout(), guide.Text(state, steps))
			return err
		},
	}
	flags := root.PersistentFlags()
	g.set = flags
	flags.StringVar(&g.CgroupRoot, "cgroup-root", cmp.Or(os.Getenv("PLIMSOLL_CGROUP_ROOT"), "/sys/fs/cgroup"),
		"where the control groups are mounted; in a container that has them elsewhere PLIMSOLL_CGROUP_ROOT tells "+
			"all commands")
	flags.StringVar(&g.StateDir, "state-dir", node.DefaultStateDir, "where the journal and the control socket live")
	flags.StringVar(&g.LockDir, "lock-dir", lock.LockDir, "where all agents of this machine have their locks")
	_ = flags.MarkHidden("lock-dir") // for tests, and for a container that mounts the node's elsewhere
	for _, s := range sections(g) {
		root.AddGroup(&cobra.Group{ID: s.title, Title: s.title + ":"})
		for _, cmd := range s.commands {
			cmd.GroupID = s.title
		}
		root.AddCommand(s.commands...)
	}
	root.AddCommand(demoServiceCommand(), waitCommand(), spinCommand(), versionCommand(),
		manCommand(func() []*cobra.Command { return []*cobra.Command{newRoot(), newPlugin()} }))
	addCompletion(root, g)
	usage.Explain(root)
	return root
}

// versionCommand says what --version does: people try either.
func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "version",
		Short:  "Show the version",
		Hidden: true, // the flag is in the list
		Args:   cobra.NoArgs,
		Run:    func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), "plimsoll version", version) },
	}
}

// section is a part of the list of commands, which people search by purpose.
type section struct {
	title    string
	commands []*cobra.Command
}

func sections(g *globals) []section {
	return []section{
		{"Run it", []*cobra.Command{runCommand(g), serveCommand(g), schedCommand(g)}},
		{"Look, and change nothing", []*cobra.Command{topCommand(g), whyCommand(g), statusCommand(g), reportCommand(g),
			receiptsCommand(g), historyCommand(g), replayCommand(g), diagnoseCommand(g), doctorCommand(g),
			snapshotCommand()}},
		{"Stop it, or step aside", []*cobra.Command{holdCommand(g), restoreCommand(g), resumeCommand(g),
			pauseCommand(g), releaseCommand(g), retireCommand(g)}},
		{"Plan ahead, and see it proved", []*cobra.Command{planCommand(g), recordCommand(g), simulateCommand(),
			adviseCommand(g), demoCommand(g)}},
	}
}
