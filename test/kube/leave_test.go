//go:build kube

package kube

import (
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
)

// leaving are the pods that tests have left behind, which end while the next test begins.
var leaving struct {
	sync.Mutex
	paths map[string]bool
}

// leave deletes the pod at the end of its test, and does not wait for it: the next test checks other pods.
func (p *pod) leave() {
	p.t.Helper()
	leaving.Lock()
	defer leaving.Unlock()
	if leaving.paths == nil {
		leaving.paths = map[string]bool{}
	}
	leaving.paths[p.path] = true
	p.ask(1)
}

// left says whether a group is of a pod that a test has left behind.
func left(at string) bool {
	leaving.Lock()
	defer leaving.Unlock()
	for ; at != "/" && at != "."; at = path.Dir(at) {
		if leaving.paths[at] {
			return true
		}
	}
	return false
}

// allGone waits until the kubelet has removed all that tests have left behind.
func allGone(t *testing.T) {
	t.Helper()
	leaving.Lock()
	paths := slices.Collect(maps.Keys(leaving.paths))
	leaving.Unlock()
	eventually(t, wait, func() string {
		for _, at := range paths {
			if _, err := cluster.groups.Inode(at); err == nil {
				return at + " is still there"
			}
		}
		return ""
	})
}

// files are those of the pod alone.
func (p *pod) files() map[string]string {
	p.t.Helper()
	all := files(p.t)
	maps.DeleteFunc(all, func(name, _ string) bool { return !strings.Contains(name, path.Base(p.path)) })
	return all
}
