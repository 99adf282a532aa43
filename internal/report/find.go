package report

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"plimsoll/internal/spelling"
	"plimsoll/internal/workload"
)

// UnknownError says that no unit answers to an argument.
type UnknownError struct {
	Arg        string
	Candidates []Container // similar names, at most mostCandidates
}

func (e *UnknownError) Error() string { return fmt.Sprintf("no container is called %q", e.Arg) }

// mostCandidates bounds what a hint lists.
const mostCandidates = 5

// Hint lists similar names, and the command that lists all.
func (e *UnknownError) Hint() string {
	const all = "`plimsoll status` lists the managed containers"
	if len(e.Candidates) == 0 {
		return all
	}
	names := make([]string, len(e.Candidates))
	for i, c := range e.Candidates {
		names[i] = Printable(c.Name)
	}
	return "such as " + strings.Join(slices.Compact(names), ", ") + "; " + all
}

// candidates are those whose name or path has the argument in it, or else those with the most similar names, or else
// the first ones.
func candidates(containers []Container, arg string) []Container {
	var near []Container
	for _, c := range byPath(containers) {
		if arg != "" && c.has(arg) {
			near = append(near, c)
		}
	}
	if len(near) == 0 {
		near = similar(containers, arg)
	}
	if len(near) == 0 {
		near = byPath(containers)
	}
	return near[:min(len(near), mostCandidates)]
}

// similar are those whose name, or a part of it, differs from the argument in a third of its letters at most, the most
// similar first.
func similar(containers []Container, arg string) []Container {
	most := max(1, (len(arg)+1)/3)
	distance := map[string]int{}
	var near []Container
	for _, c := range byPath(containers) {
		least := spelling.Distance(arg, c.Name)
		for part := range strings.SplitSeq(c.Name, "/") {
			least = min(least, spelling.Distance(arg, part))
		}
		if least <= most {
			distance[c.Cgroup] = least
			near = append(near, c)
		}
	}
	slices.SortStableFunc(near, func(a, b Container) int { return distance[a.Cgroup] - distance[b.Cgroup] })
	return near
}

// listed names containers, with their paths where they have other names.
func listed(list []Container) string {
	words := make([]string, len(list))
	for i, c := range list {
		words[i] = Printable(c.Name)
		if c.Name != c.Cgroup {
			words[i] += " (" + Printable(c.Cgroup) + ")"
		}
	}
	return strings.Join(words, ", ")
}

// AmbiguousError says that several units answer to an argument.
type AmbiguousError struct {
	Arg        string
	Candidates []Container
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%q may be any of: %s", e.Arg, listed(e.Candidates))
}

// Hint says how to name the group exactly.
func (e *AmbiguousError) Hint() string { return "give the cgroup path" }

// minIDPrefix keeps a short word such as "ad" from being read as the beginning of a container ID.
const minIDPrefix = 4

// Find picks the unit that a person means: by its cgroup path, its name, the last part of its name or path, or the
// beginning of its container ID. An exact match goes before a looser one; within a kind of match it must be the
// only one.
func Find(containers []Container, arg string) (Container, error) {
	for _, match := range []func(Container, string) bool{byCgroup, byName, byLastPart, byID} {
		var found []Container
		for _, c := range containers {
			if match(c, arg) {
				found = append(found, c)
			}
		}
		switch {
		case len(found) == 1:
			return found[0], nil
		case len(found) > 1:
			return Container{}, &AmbiguousError{Arg: arg, Candidates: byPath(found)}
		}
	}
	return Container{}, &UnknownError{Arg: arg, Candidates: candidates(containers, arg)}
}

func byCgroup(c Container, arg string) bool {
	return c.Cgroup == path.Clean("/"+arg) && arg != ""
}

func byName(c Container, arg string) bool { return c.Name == arg }

// byLastPart takes "nginx" for default/web/nginx, nginx.service and /lab/nginx.
func byLastPart(c Container, arg string) bool {
	for _, last := range []string{path.Base(c.Name), path.Base(c.Cgroup)} {
		if last == arg || strings.TrimSuffix(strings.TrimSuffix(last, ".service"), ".scope") == arg {
			return true
		}
	}
	return false
}

// byID takes the beginning of the ID that a runtime writes into the path: 64 hexadecimal digits, alone
// (cgroupfs driver) or within "docker-ID.scope" (systemd driver), in which crun may have made another group.
func byID(c Container, arg string) bool {
	if c.Level == "pod" && strings.HasSuffix(c.Cgroup, ".scope") {
		return false // the one in it is meant
	}
	id := containerID.FindString(path.Base(strings.TrimSuffix(c.Cgroup, "/"+workload.InScope)))
	return len(arg) >= minIDPrefix && id != "" && strings.HasPrefix(id, arg)
}

var containerID = regexp.MustCompile("[0-9a-f]{64}")
