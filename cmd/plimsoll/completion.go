package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/config"
	"plimsoll/internal/loadline"
	"plimsoll/internal/report"
	"plimsoll/internal/strategy"
)

// completeTimeout bounds the wait after the tab key.
const completeTimeout = time.Second

// addCompletion adds the command `completion`, and what flags and arguments are completed with.
func addCompletion(root *cobra.Command, g *globals) {
	root.SetCompletionCommandGroupID(root.Groups()[1].ID)
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.Example = "  source <(plimsoll completion bash)"
			for _, shell := range cmd.Commands() {
				shell.Example = "  plimsoll completion " + shell.Name()
			}
			cmd.Args = cobra.ArbitraryArgs // RunE knows better what to say of them
			cmd.RunE = func(cmd *cobra.Command, args []string) error {
				err := misusef("the shell is missing")
				if len(args) > 0 {
					err = misusef("there is no completion for the shell %q", args[0])
				}
				return withHint(err, cmd.CommandPath()+" bash, fish, powershell or zsh")
			}
		}
	}
	complete(root, g)
}

// complete goes through a command and its own commands.
func complete(cmd *cobra.Command, g *globals) {
	for flag, words := range map[string][]string{
		"policy": {string(strategy.None), string(strategy.CPUBurstOnly), string(strategy.CFSQuotaBurstOnly),
			string(strategy.Auto)},
		"log-format": {"text", "json"},
		"rule":       {loadline.Strict.String(), loadline.Published.String()},
		"sort":       orders(),
		"replay":     {loadline.Offsets.String(), loadline.Blocks.String(), loadline.IID.String()},
	} {
		if cmd.Flags().Lookup(flag) != nil {
			// It fails only where there is no such flag.
			_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	switch cmd.Name() {
	case "status", "pause", "release", "resume", "why":
		cmd.ValidArgsFunction = g.containerNames(1, g.looksAfter)
	case "record", "diagnose":
		cmd.ValidArgsFunction = g.containerNames(0, g.here)
	}
	for _, sub := range cmd.Commands() {
		complete(sub, g)
	}
}

func orders() []string {
	var list []string
	for _, o := range report.Orders() {
		list = append(list, string(o))
	}
	return list
}

// containerNames completes names of containers, at most so many; 0: any number.
func (g *globals) containerNames(most int, list func(context.Context) []report.Container) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
		defer cancel()
		var names []string
		for _, c := range list(ctx) {
			name := report.Printable(c.Name)
			if strings.HasPrefix(begun, "/") {
				name = report.Printable(c.Cgroup)
			}
			if strings.HasPrefix(name, begun) && !slices.Contains(args, name) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// looksAfter are the containers of the agent.
func (g *globals) looksAfter(ctx context.Context) []report.Container {
	s, err := g.client().Status(ctx)
	if err != nil {
		return nil // a shell shows no error
	}
	return s.Containers
}

// here are the containers of this node.
func (g *globals) here(ctx context.Context) []report.Container {
	dir, tree, err := g.OpenTree()
	if err != nil {
		return nil
	}
	defer dir.Close()
	here, err := g.containerIndex(ctx, tree, &config.File{})
	if err != nil {
		return nil
	}
	return here.Containers()
}
