package main

import (
	"context"
	"log/slog"
	"path"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/config"
	"plimsoll/internal/discover/cgroupfs"
	"plimsoll/internal/discover/index"
)

// How a person names a container, and several.
const (
	containerForms = "CONTAINER is a name as in `plimsoll status`, the last part of one, a cgroup path, or the " +
		"beginning (4 characters or more)\n" +
		"of a container ID"
	containersForms = containerForms +
		"; a glob of names or paths selects all that match it, and a star in it matches one part of a path"
)

// containerIndex reads the node, and the agent where there is one.
func (g *globals) containerIndex(ctx context.Context, tree *cgroup.Tree, file *config.File) (*index.Index, error) {
	found, err := cgroupfs.OfHost(tree, "", file, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	defer found.Close()
	pods, err := found.Pods()
	if err != nil {
		return nil, err
	}
	c := index.New(tree, path.Join(g.CgroupRoot, tree.Dir("/")), file, pods)
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if s, err := g.client().Status(ctx); err == nil { // else there is no agent, or none that answers
		c.Merge(s.Containers)
	}
	return c, nil
}
