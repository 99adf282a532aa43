package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/hint"
	"plimsoll/internal/progress"
	"plimsoll/internal/report"
	"plimsoll/internal/top/screen"
	"plimsoll/internal/view"
	"plimsoll/internal/why"
)

// whyFlags are what a person may choose about an explanation.
type whyFlags struct{ length time.Duration }

func (f *whyFlags) register(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&f.length, "for", 5*time.Second, "how long to watch")
}

func whyCommand(g *globals) *cobra.Command {
	f := &whyFlags{}
	cmd := &cobra.Command{
		Use:   "why NAME",
		Short: "Say in a paragraph why a container stands still, what was done about it, and what to do",
		Long: `Watch a container for a moment, and say in a paragraph whether it stands still, why, what Plimsoll did about it, and
what to do. NAME is a container or pod as in ` + "`plimsoll status`" + `, or a part of a name.`,
		Example: "  plimsoll why default/web/nginx",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s := g.topSource()
			defer s.close()
			return f.explain(cmd, s, g.container(args[0]), "plimsoll diagnose", nil)
		},
	}
	f.register(cmd)
	return cmd
}

// mostParagraphs bounds how many containers are explained at once.
const mostParagraphs = 5

// explain says a paragraph about each container that is meant. diagnose is the command that measures waits. In a
// cluster, on is the view of a row's node, whose figures a cause depends on, and what runs the other commands there.
func (f *whyFlags) explain(cmd *cobra.Command, s screen.Source, arg, diagnose string,
	on func(node string) (v view.View, program string)) error {
	if f.length <= 0 {
		return misusef("--for %s: a time above 0", f.length)
	}
	ctx, stop := untilAsked(cmd)
	defer stop()
	bar := progress.For(bars(cmd), "watching", f.length)
	v, nodes, err := secondView(ctx, s, f.length)
	bar.Stop()
	if err != nil {
		return err
	}
	rows := why.Rows(v, arg)
	if len(rows) == 0 {
		return unknownRow(v, arg)
	}
	for i, r := range rows[:min(len(rows), mostParagraphs)] {
		if i > 0 {
			fmt.Fprintln(cmd.OutOrStdout())
		}
		node, own, program := nodes[r.ID], v, ""
		if node != "" {
			own, program = on(node)
			r.ID = strings.TrimPrefix(r.ID, node+":") // as its agent knows it
		}
		text := why.Paragraph(own, r, "`"+diagnose+" "+hint.Word(r.Name)+"`", hint.Word)
		if node != "" {
			text = "Node " + report.Printable(node) + ": " + strings.ReplaceAll(text, "`plimsoll ", "`"+program+" ")
		}
		fmt.Fprint(cmd.OutOrStdout(), report.Wrapped(text))
	}
	if n := len(rows) - mostParagraphs; n > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "plimsoll: %d more have %s in their names\n", n, report.Printable(arg))
	}
	return nil
}

// unknownRow is the error of a name that nothing has, with those that are close.
func unknownRow(v view.View, arg string) error {
	var s report.Status
	for _, r := range v.Rows {
		s.Containers = append(s.Containers, report.Container{Cgroup: r.ID, Name: r.Name, Pod: r.Pod})
	}
	_, err := s.Named(arg)
	return err
}
