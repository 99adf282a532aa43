package main

import (
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/config"
	"plimsoll/internal/discover/cgroupfs"
	"plimsoll/internal/hint"
	"plimsoll/internal/report"
	"plimsoll/internal/strategy"
)

// mostUnnamed bounds how many groups without a matching glob are listed.
const mostUnnamed = 10

// leftOut says what the configuration leaves out, which a person may have meant: globs that match nothing; where
// nothing is to be changed at all, also a policy that changes nothing and the groups that have a limit and are not
// managed.
func leftOut(tree *cgroup.Tree, found *cgroupfs.Scanner, file *config.File, nothing bool) []string {
	var notes []string
	for _, glob := range file.Unmatched(found.Groups()) {
		notes = append(notes, unmatched(glob))
	}
	if !nothing {
		return notes
	}
	if file.Node().Policy == strategy.None {
		notes = append(notes,
			"Where no override says otherwise the policy is none, with which no limit is changed. hint: --policy auto")
	}
	if list := limited(tree, found.Unnamed()); len(list) > 0 {
		more := ""
		if n := len(list) - mostUnnamed; n > 0 {
			list, more = list[:mostUnnamed], fmt.Sprintf(" and %d more", n)
		}
		notes = append(notes,
			"These groups have a limit and are not managed, because nothing names them: "+strings.Join(list,
				", ")+more+". hint: --include "+hint.Word(list[0]))
	}
	return notes
}

func unmatched(glob string) string {
	return fmt.Sprintf("No control group matches %s. hint: a star does not cross a slash; the path begins below the "+
		"mount of the cpu controller", hint.Word(glob))
}

func limited(tree *cgroup.Tree, groups []string) []string {
	var list []string
	for _, g := range groups {
		if b, err := tree.Bandwidth(g); err == nil && b.Limited() {
			list = append(list, g)
		}
	}
	return list
}

// selection is which groups the configuration names, of those that are there.
type selection struct {
	*cgroupfs.Scanner
	file atomic.Pointer[config.File]
}

// take takes a configuration, and logs the globs that match nothing now. Groups may come that they match.
func (s *selection) take(file *config.File, log *slog.Logger) {
	s.Configure(file)
	s.file.Store(file)
	for _, glob := range file.Unmatched(s.Groups()) {
		log.Warn("no control group matches the glob of an override or include yet", "glob", glob)
	}
}

// empty explains a status without a container; "" where there is nothing to be said.
func (s *selection) empty() string {
	if s == nil {
		return ""
	}
	globs := s.file.Load().Unmatched(s.Groups())
	if len(globs) == 0 {
		return ""
	}
	for i, glob := range globs {
		globs[i] = hint.Word(glob)
	}
	return fmt.Sprintf(report.ProblemNothingNamed, strings.Join(globs, ", "))
}
