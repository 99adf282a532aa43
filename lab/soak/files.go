package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cpu"
)

// files are those of groups, as their owner sees them.
type files struct {
	root string
	tree *cgroup.Tree
}

func (f files) dir(group string) string { return filepath.Join(f.root, f.tree.Dir(group)) }

// limit writes the quota of a group as runc does: the file is opened, written and closed, so that inotify tells of
// it.
func (f files) limit(group string, quota time.Duration) error {
	name, text := "cpu.max", fmt.Sprintf("%d %d", quota.Microseconds(), cpu.DefaultPeriod.Microseconds())
	if f.tree.Version() == cgroup.V1 {
		name, text = "cpu.cfs_quota_us", fmt.Sprint(quota.Microseconds())
	}
	file, err := os.OpenFile(filepath.Join(f.dir(group), name), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}

// settings are the files of a group's CPU controller that can be written and read, by name.
func (f files) settings(group string) (map[string]string, error) {
	entries, err := os.ReadDir(f.dir(group))
	if err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "cpu.") || e.Name() == "cpu.pressure" { // the latter counts
			continue
		}
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		if info.Mode()&0o200 == 0 || info.Mode()&0o400 == 0 {
			continue
		}
		text, err := os.ReadFile(filepath.Join(f.dir(group), e.Name()))
		if err != nil {
			return nil, err
		}
		texts[e.Name()] = string(text)
	}
	return texts, nil
}
