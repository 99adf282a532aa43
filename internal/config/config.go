// Package config turns a configuration file, or the flags that stand in for one, into the strategy of each control
// group. It is pure: bytes in, a checked answer out. docs/CONFIG.md describes the fields.
//
// Kubernetes' annotations and ConfigMaps are read here too, from their texts (type Kubernetes): other people write
// them, and so a bad field is skipped and reported, where a bad file is an error.
//
// Precedence, weakest first: the defaults (strategy.Default), the section strategy, then the overrides whose glob
// matches the group, in the order of the file. Each replaces only the fields that it names.
package config

import (
	"path"
	"slices"

	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// File is a checked configuration. The zero File is the empty one: every field at its default.
type File struct {
	strategy  strategy.NodePatch
	overrides []override
	reserve   *strategy.Reserve
	tenants   Tenants
}

// override is one entry of overrides, or of include: an entry without a field.
type override struct {
	cgroup    string // glob in path.Match's syntax
	strategy  strategy.Patch
	request   *float64
	class     *workload.Class
	exclusive *workload.Exclusive
}

// Effective is what a group is to get, all matching parts of the configuration merged.
type Effective struct {
	Strategy  strategy.Strategy
	Request   float64        // reserved CPUs; 0: not said
	Class     workload.Class // ClassNone: not said
	Exclusive workload.Exclusive
	// Matched says that an override or include names the group: it is looked after even where nothing else
	// tells that it is a container.
	Matched bool
}

// Node is the strategy of the node, before any override. SharePoolThresholdPercent is read from here.
func (f *File) Node() strategy.Node {
	n := f.strategy.Over(strategy.DefaultNode())
	n.Extra = f.tenants.Extra
	return n
}

// Unmatched lists the globs of overrides and include that match none of the groups, in the order of the file,
// each once.
func (f *File) Unmatched(groups []string) []string {
	var list []string
	for _, o := range f.overrides {
		hits := func(group string) bool { ok, err := path.Match(o.cgroup, group); return ok && err == nil }
		if !slices.Contains(list, o.cgroup) && !slices.ContainsFunc(groups, hits) {
			list = append(list, o.cgroup)
		}
	}
	return list
}

// Resolve answers for the group with this path, below the cpu hierarchy (v1) or the root (v2).
func (f *File) Resolve(group string) Effective {
	e := Effective{Strategy: f.Node().Strategy}
	for _, o := range f.overrides {
		if ok, err := path.Match(o.cgroup, group); err != nil || !ok {
			continue // the syntax was checked by Parse
		}
		e.Matched = true
		e.Strategy = o.strategy.Over(e.Strategy)
		if o.request != nil {
			e.Request = *o.request
		}
		if o.class != nil {
			e.Class = *o.class
		}
		if o.exclusive != nil {
			e.Exclusive = *o.exclusive
		}
	}
	return e
}

// FromFlags is the configuration of `plimsoll run --policy P --include GLOB`. An empty policy is the default.
func FromFlags(policy string, include []string) (*File, error) {
	f := &File{}
	if policy != "" {
		p := strategy.Policy(policy)
		f.strategy.Policy = &p
		if err := checkStrategy(f.strategy.Patch, policy); err != nil {
			return nil, err.at("", 0, "--policy")
		}
	}
	for _, glob := range include {
		if err := checkGlob(glob); err != nil {
			return nil, err.at("", 0, "--include")
		}
		f.overrides = append(f.overrides, override{cgroup: glob})
	}
	return f, nil
}
