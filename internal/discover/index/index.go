// Package index finds the containers and groups of a node by what a person calls them: a name as in `plimsoll status`,
// the last part of one, a path, the beginning of a container ID, or a glob of names or paths.
package index

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/config"
	"plimsoll/internal/hint"
	"plimsoll/internal/report"
	"plimsoll/internal/workload"
)

// Index lists what may be named on this node: the containers, the pods that the agent knows, and by its path
// any group.
type Index struct {
	tree      *cgroup.Tree
	hierarchy string // the directory of the cpu hierarchy, for paths that were copied from the file system
	file      *config.File
	known     []report.Container
}

// New lists these pods' containers without sandboxes, which work for nobody.
// Hierarchy is the directory of the cpu hierarchy.
func New(tree *cgroup.Tree, hierarchy string, file *config.File, pods []workload.Pod) *Index {
	c := &Index{tree: tree, hierarchy: hierarchy, file: file}
	for _, p := range pods {
		for _, one := range p.Containers {
			if one.Sandbox {
				continue
			}
			u := report.Container{Cgroup: one.Path, Name: one.Name, Request: one.Request, Strategy: one.Strategy}
			if d := one.Declared; d != nil {
				u.Limit, u.Period = d.Bandwidth.Quota, d.Bandwidth.Period
			}
			c.known = append(c.known, u)
		}
	}
	return c
}

// Merge takes the names and requests that the agent knows, and further groups that it manages.
func (c *Index) Merge(agents []report.Container) {
	for _, a := range agents {
		i := slices.IndexFunc(c.known, func(u report.Container) bool { return u.Cgroup == a.Cgroup })
		if i < 0 {
			c.known = append(c.known, a)
			continue
		}
		u := &c.known[i]
		u.Name, u.Request = a.Name, cmp.Or(u.Request, a.Request)
		u.Strategy, u.Limit, u.Period = a.Strategy, a.Limit, a.Period
	}
}

// Containers are all that are there, without the pods around them.
func (c *Index) Containers() []report.Container {
	return slices.DeleteFunc(slices.Clone(c.known), func(u report.Container) bool {
		_, err := c.tree.Inode(u.Cgroup)
		return u.Level == "pod" || err != nil
	})
}

// Find returns the containers and groups that the arguments name, each once.
func (c *Index) Find(args []string) ([]report.Container, error) {
	var list []report.Container
	for _, arg := range args {
		found, err := c.match(arg)
		if err != nil {
			return nil, err
		}
		for _, one := range found {
			if !lists(list, one.Cgroup) {
				list = append(list, one)
			}
		}
	}
	return list, nil
}

func lists(list []report.Container, group string) bool {
	return slices.ContainsFunc(list, func(o report.Container) bool { return o.Cgroup == group })
}

func (c *Index) match(arg string) ([]report.Container, error) {
	if strings.ContainsAny(arg, "*?[") {
		list, err := c.like(arg)
		if err == nil && len(list) == 0 {
			err = hint.With(fmt.Errorf("nothing is called like %q", arg),
				"a star matches one part of a path, not a slash")
		}
		return list, err
	}
	arg = Below(c.hierarchy, arg)
	group := path.Clean("/" + arg)
	if _, err := c.tree.Inode(group); err == nil && strings.HasPrefix(arg, "/") && !lists(c.known, group) {
		return []report.Container{c.plain(group)}, nil
	}
	one, err := report.Find(c.known, arg)
	if err != nil {
		return nil, hint.With(err, forNode(err))
	}
	return []report.Container{one}, nil
}

// forNode is the hint of commands that take any group of the node.
func forNode(err error) string {
	var unknown *report.UnknownError
	if errors.As(err, &unknown) && len(unknown.Candidates) > 0 {
		return unknown.Hint() + "; the path of any control group does, too"
	}
	return "name a container of this node, or the path of a control group, such as /lab/web"
}

// plain is a group that is no container.
func (c *Index) plain(group string) report.Container {
	e := c.file.Resolve(group)
	return report.Container{Cgroup: group, Name: group, Request: e.Request, Strategy: e.Strategy}
}

// like are containers by name or path, and other groups by path.
func (c *Index) like(glob string) ([]report.Container, error) {
	glob = Below(c.hierarchy, glob)
	if _, err := path.Match(glob, ""); err != nil {
		return nil, fmt.Errorf("%q: %w", glob, err)
	}
	hit := func(name string) bool { ok, _ := path.Match(glob, name); return ok } // the syntax is good
	var list []report.Container
	for _, one := range c.known {
		if hit(one.Name) || hit(one.Cgroup) {
			list = append(list, one)
		}
	}
	if !strings.HasPrefix(glob, "/") {
		return list, nil
	}
	var walk func(group string) error
	walk = func(group string) error {
		children, err := c.tree.Children(group)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		for _, child := range children {
			if hit(child) && !lists(list, child) {
				list = append(list, c.plain(child))
			}
			if err := walk(child); err != nil {
				return err
			}
		}
		return err
	}
	return list, walk("/")
}

// Below is the path of a group that was given as a path of the file system, below the hierarchy.
func Below(hierarchy, arg string) string {
	if rest, ok := strings.CutPrefix(path.Clean(arg), path.Clean(hierarchy)+"/"); ok {
		return "/" + rest
	}
	return arg
}
