package experiment

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// TempDir makes a directory for files that an experiment needs, and removes those of experiments that were killed.
func TempDir(name string) (string, error) {
	prefix := "plimsoll-" + name + "-"
	old, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*-*")) // the pattern is well-formed
	for _, dir := range old {
		maker, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), prefix), "-")
		if pid, err := strconv.Atoi(maker); err == nil && !alive(pid) {
			_ = os.RemoveAll(dir) // what cannot be removed does no harm
		}
	}
	dir, err := os.MkdirTemp("", prefix+strconv.Itoa(os.Getpid())+"-*")
	if err != nil {
		return "", fmt.Errorf("make a directory for %s: %w", name, err)
	}
	return dir, nil
}
