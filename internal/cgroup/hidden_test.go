package cgroup

import (
	"os"
	"path/filepath"
	"testing"
)

// TestHidesTasks: on v1 a reader that sees the tasks of its own group alone sees nothing.
func TestHidesTasks(t *testing.T) {
	for _, c := range []struct {
		name  string
		tasks map[string]string // by group
		want  bool
	}{
		{"nothing but its own", map[string]string{"/": "", "/pod": "", "/pod/self": "7\n8\n", "/pod/other": ""}, true},
		{"others as zeros", map[string]string{"/": "0\n0\n", "/pod": "", "/pod/self": "7\n", "/pod/other": "0\n"},
			true},
		{"another container", map[string]string{"/": "", "/pod": "", "/pod/self": "7\n", "/pod/other": "9\n"}, false},
		{"the machine's", map[string]string{"/": "1\n2\n", "/pod": "", "/pod/self": "7\n"}, false},
	} {
		root := t.TempDir()
		for group, tasks := range c.tasks {
			dir := filepath.Join(root, "cpu", group)
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			for name, text := range map[string]string{"tasks": tasks, "cgroup.procs": tasks, "cpu.shares": "1024\n"} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		dir := NewDir(root)
		tree, err := Detect(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := tree.HidesTasks(7); got != c.want || err != nil {
			t.Errorf("%s: %v, %v", c.name, got, err)
		}
		dir.Close()
	}
}
