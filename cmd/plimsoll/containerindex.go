package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"slices"
	"strings"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/config"
	"plimsoll/internal/report"
)

// How a person names a container, and several.
const (
	containerForms = "CONTAINER is a name as in `plimsoll status`, the last part of one, a cgroup path, or the beginning (4 characters or more)\n" +
		"of a container ID"
	containersForms = containerForms + "; a glob of names or paths selects all that match it, and a star in it matches one part of a path"
)

// containerIndex lists what may be named on this node: the containers, the pods that the agent knows, and by its path
// any group.
type containerIndex struct {
	tree          *cgroup.Tree
	hierarchy     string // the directory of the cpu hierarchy, for paths that were copied from the file system
	file          *config.File
	bySystemdUnit []report.Container
}

// containerIndex reads the node, and the agent where there is one.
func (g *globals) containerIndex(ctx context.Context, tree *cgroup.Tree, file *config.File) (*containerIndex, error) {
	found, err := scanner(tree, "", file, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	defer found.Close()
	pods, err := found.Pods()
	if err != nil {
		return nil, err
	}
	c := &containerIndex{tree: tree, hierarchy: path.Join(g.cgroupRoot, tree.Dir("/")), file: file}
	for _, p := range pods {
		for _, one := range p.Containers {
			u := report.Container{Cgroup: one.Path, Name: one.Name, Request: one.Request, Strategy: one.Strategy}
			if d := one.Declared; d != nil {
				u.Limit, u.Period = d.Bandwidth.Quota, d.Bandwidth.Period
			}
			c.bySystemdUnit = append(c.bySystemdUnit, u)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if s, err := g.client().Status(ctx); err == nil { // else there is no agent, or none that answers
		c.merge(s.Containers)
	}
	return c, nil
}

// merge takes the names and requests that the agent knows, and further groups that it manages.
func (c *containerIndex) merge(agents []report.Container) {
	for _, a := range agents {
		i := slices.IndexFunc(c.bySystemdUnit, func(u report.Container) bool { return u.Cgroup == a.Cgroup })
		if i < 0 {
			c.bySystemdUnit = append(c.bySystemdUnit, a)
			continue
		}
		u := &c.bySystemdUnit[i]
		u.Name, u.Request = a.Name, cmp.Or(u.Request, a.Request)
		u.Strategy, u.Limit, u.Period = a.Strategy, a.Limit, a.Period
	}
}

// containers are all that are there, without the pods around them.
func (c *containerIndex) containers() []report.Container {
	return slices.DeleteFunc(slices.Clone(c.bySystemdUnit), func(u report.Container) bool {
		_, err := c.tree.Inode(u.Cgroup)
		return u.Level == "pod" || err != nil
	})
}

// find returns the containers and groups that the arguments name, each once.
func (c *containerIndex) find(args []string) ([]report.Container, error) {
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

func (c *containerIndex) match(arg string) ([]report.Container, error) {
	if strings.ContainsAny(arg, "*?[") {
		list, err := c.like(arg)
		if err == nil && len(list) == 0 {
			err = withHint(fmt.Errorf("nothing is called like %q", arg), "a star matches one part of a path, not a slash")
		}
		return list, err
	}
	arg = belowHierarchy(c.hierarchy, arg)
	group := path.Clean("/" + arg)
	if _, err := c.tree.Inode(group); err == nil && strings.HasPrefix(arg, "/") && !lists(c.bySystemdUnit, group) {
		return []report.Container{c.plain(group)}, nil
	}
	one, err := report.Find(c.bySystemdUnit, arg)
	if err != nil {
		return nil, withHint(err, forNode(err))
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
func (c *containerIndex) plain(group string) report.Container {
	e := c.file.Resolve(group)
	return report.Container{Cgroup: group, Name: group, Request: e.Request, Strategy: e.Strategy}
}

// like are containers by name or path, and other groups by path.
func (c *containerIndex) like(glob string) ([]report.Container, error) {
	glob = belowHierarchy(c.hierarchy, glob)
	if _, err := path.Match(glob, ""); err != nil {
		return nil, fmt.Errorf("%q: %w", glob, err)
	}
	hit := func(name string) bool { ok, _ := path.Match(glob, name); return ok } // the syntax is good
	var list []report.Container
	for _, one := range c.bySystemdUnit {
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
