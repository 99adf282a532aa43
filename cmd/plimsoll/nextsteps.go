package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/config"
	"plimsoll/internal/discover/cgroupfs"
	"plimsoll/internal/guide"
	"plimsoll/internal/report"
	"plimsoll/internal/web"
)

// facts are what `plimsoll` without a command goes by. What cannot be read stays unknown: advice must not fail.
func (g *globals) facts(ctx context.Context) guide.Facts {
	f := guide.Facts{Root: os.Geteuid() == 0}
	s, err := g.client().Status(ctx)
	switch {
	case err == nil:
		f.Agent = agentFacts(s)
		return f
	case errors.Is(err, fs.ErrPermission):
		f.Agent.Denied = true
		return f
	}
	if err := g.elsewhere(err); errors.Is(err, web.ErrNoAnswer) {
		f.Elsewhere = err.Error()
		var h interface{ Hint() string }
		if errors.As(err, &h) {
			f.Elsewhere = h.Hint()
		}
		return f
	}
	if left, err := offlineStatus(g, time.Now()); err == nil {
		for _, c := range left.Containers {
			if c.Quota.Changed || c.Burst.Changed {
				f.Left++
			}
		}
	}
	dir, tree, err := g.OpenTree()
	if err != nil {
		f.Groups = err.Error()
		return f
	}
	defer dir.Close()
	f.Limited, f.Throttled = throttledHere(tree)
	return f
}

func agentFacts(s report.Status) guide.Agent {
	a := guide.Agent{Runs: true, Held: s.Mode == report.Held, Reason: s.HeldReason, Containers: len(s.Containers),
		Problems: len(s.Problems)}
	for _, c := range s.Containers {
		if c.Quota.Changed || c.Burst.Changed {
			a.Changed++
		}
		if lost := c.Totals.ThrottledWall; lost > a.Worst.Lost {
			a.Worst = guide.Throttled{Name: c.Name, Lost: lost}
		}
	}
	return a
}

// throttledHere are the groups with a limit, and which of them the kernel has throttled, the worst first.
func throttledHere(tree *cgroup.Tree) (limited int, list []guide.Throttled) {
	found, err := cgroupfs.OfHost(tree, "", &config.File{}, slog.New(slog.DiscardHandler))
	if err != nil {
		return 0, nil
	}
	defer found.Close()
	unnamed := found.Unnamed()
	for _, group := range found.Groups() {
		b, err := tree.Bandwidth(group)
		if err != nil || !b.Limited() {
			continue
		}
		limited++
		if c, err := tree.Stat(group); err == nil && c.Periods > 0 && c.Throttled > 0 {
			one := guide.Throttled{Name: cmp.Or(found.NameOf(group), group),
				Ratio: float64(c.Throttled) / float64(c.Periods)}
			if slices.Contains(unnamed, group) {
				one.Include = group
			}
			list = append(list, one)
		}
	}
	slices.SortStableFunc(list, func(a, b guide.Throttled) int { return cmp.Compare(b.Ratio, a.Ratio) })
	return limited, list
}
