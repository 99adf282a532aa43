// Package guide says what to do next on a machine.
//
// # Problem
//
// Who has just installed a program does not know its commands, and a list of twenty of them does not say which one is
// next. That depends on the machine: whether an agent runs, whether it is held, whether anything stands still.
//
// # Approach
//
// Few facts are read, each cheap and without a write, and one situation is recognized, the most urgent first. It is
// said in a sentence, with at most three commands to copy.
//
// # Known limits
//
// Throttled groups are those that the kernel has counted since they were made: one may have been throttled long ago.
package guide

import (
	"fmt"
	"strings"
	"time"

	"plimsoll/internal/printable"
)

// Facts are what is known of the machine. What could not be read is zero.
type Facts struct {
	Root      bool   // the caller is
	Groups    string // why there are no control groups to look after; "" where there are
	Agent     Agent
	Elsewhere string      // where an agent runs that does not answer here, with a hint
	Left      int         // containers whose files still hold a value of an agent that no longer runs
	Throttled []Throttled // groups with a limit that were throttled, the worst first
	Limited   int         // groups with a limit
}

// Agent is what the agent says of itself; Runs is false where none answers.
type Agent struct {
	Runs       bool
	Denied     bool // it runs, and the caller may not read it
	Held       bool
	Reason     string
	Containers int
	Changed    int
	Problems   int
	Worst      Throttled // of the containers that it knows; zero: none was throttled
}

// Throttled is a group that stood still at its limit.
type Throttled struct {
	Name    string
	Include string        // its path, where it is looked after only if a pattern names it
	Ratio   float64       // throttled periods of all
	Lost    time.Duration // 0: not known
}

// Step is a command, and what it is for.
type Step struct{ Command, For string }

// Next says how it is on this machine, and what may come next.
func Next(f Facts) (state string, steps []Step) {
	doctor := Step{"plimsoll doctor", "what this kernel can do, and what that means"}
	switch {
	case f.Agent.Held:
		return "An agent runs and is held" + because(f.Agent.Reason) + ": it measures and writes nothing.",
			[]Step{{"plimsoll resume", "end that"}, {"plimsoll status", "what is changed now"}}
	case f.Agent.Runs && f.Agent.Problems > 0:
		return running(f.Agent) + fmt.Sprintf(" It reports %s.", count(f.Agent.Problems, "problem")),
			[]Step{{"plimsoll status", "the problems, with hints"}, doctor}
	case f.Agent.Runs:
		return running(f.Agent), []Step{{"plimsoll top", "who stands still now, and why"},
			{"plimsoll report", "what it has done so far"}, {"plimsoll restore", "put everything back"}}
	case f.Agent.Denied:
		return "An agent runs, and only root and the group of its socket may read it.", []Step{{"sudo plimsoll status",
			"what is changed now"}}
	case f.Elsewhere != "":
		return "An agent runs that does not answer here: " + printable.Text(f.Elsewhere) + ".", nil
	case f.Left > 0:
		return fmt.Sprintf("No agent runs, and %s still changed by one that is gone.", are(f.Left, "container")),
			[]Step{{"plimsoll restore", "put everything back"}, {"plimsoll status", "what is changed"}}
	case f.Groups != "":
		return "No agent runs, and there is nothing to look after: " + printable.Text(f.Groups) + ".", []Step{doctor}
	}
	return idle(f, doctor)
}

// idle is a machine without an agent.
func idle(f Facts, doctor Step) (string, []Step) {
	sudo := ""
	if !f.Root {
		sudo = "sudo "
	}
	try := Step{sudo + "plimsoll demo", "what each policy does to the latency of a service, here"}
	switch {
	case len(f.Throttled) > 0:
		worst, include := f.Throttled[0], ""
		if worst.Include != "" {
			include = " --include " + word(worst.Include)
		}
		return fmt.Sprintf("No agent runs. %s; the worst is %s, in %.1f %% of its periods.",
				stand(len(f.Throttled)), printable.Text(worst.Name), 100*worst.Ratio),
			[]Step{{sudo + "plimsoll plan --policy auto" + include, "what Plimsoll would change, and why"},
				{sudo + "plimsoll run --policy auto" + include, "until it is stopped: then all is put back"},
				{sudo + "plimsoll diagnose", "what else keeps containers from a CPU"}}
	case f.Limited > 0:
		return fmt.Sprintf("No agent runs. %s a CPU limit, and none was throttled: there is nothing to gain now.",
			has(f.Limited, "group")), []Step{try, doctor}
	}
	return "No agent runs, and no group has a CPU limit: there is nothing to gain now.", []Step{try, doctor}
}

func running(a Agent) string {
	text := fmt.Sprintf("An agent looks after %s", count(a.Containers, "container"))
	if a.Changed > 0 {
		text += fmt.Sprintf(", of which %d are changed now", a.Changed)
	}
	if a.Worst.Lost > 0 {
		text += fmt.Sprintf("; %s has lost the most, %s at its limit", printable.Text(a.Worst.Name),
			a.Worst.Lost.Round(time.Millisecond))
	}
	return text + "."
}

// Text is what is shown.
func Text(state string, steps []Step) string {
	var b strings.Builder
	b.WriteString(state + "\n")
	longest := 0
	for _, s := range steps {
		longest = max(longest, len([]rune(s.Command)))
	}
	for i, s := range steps {
		if i == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "  %s%s  # %s\n", s.Command, strings.Repeat(" ", longest-len([]rune(s.Command))), s.For)
	}
	b.WriteString("\n`plimsoll help` lists all commands.\n")
	return b.String()
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + printable.Text(reason) + ")"
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func are(n int, what string) string {
	if n == 1 {
		return "1 " + what + " is"
	}
	return count(n, what) + " are"
}

func has(n int, what string) string {
	if n == 1 {
		return "1 " + what + " has"
	}
	return count(n, what) + " have"
}

func stand(n int) string {
	if n == 1 {
		return "1 group was throttled at its limit"
	}
	return fmt.Sprintf("%d groups were throttled at their limits", n)
}

// word spells a path for a shell, also one with letters that a shell reads.
func word(s string) string {
	s = printable.Text(s)
	if strings.Trim(s, "/-_.:abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
