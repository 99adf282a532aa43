package config

import (
	"errors"
	"path"
	"strings"
	"testing"
)

// Whatever the bytes: an error with a line, or a configuration whose every answer is in range, whose globs are
// globs, and which means the same when it is written out and read again.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{example, "", "strategy: {policy: auto, sharePoolThresholdPercent: 0}\n",
		"strategy: {loadLinePercent: 99.9}\n", "include: [/a, '/b*']\n",
		"overrides: [{cgroup: /a, request: 5m, class: BE}]\n", "strategy:\n\tpolicy: x\n", "a: &b [*b]\n",
		"? [a]\n: !!x y\n",
		"strategy: {<<: *x}\n", "--- |\n a\n...\n", "overrides:\n- cgroup: \"/\\u0000\"\n", "{", "'",
		"\"\\", "%TAG\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse("f", data)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || file != nil || e.Line < 1 || e.Line > lines(data)+1 || e.Msg == "" {
				t.Fatalf("%q: %#v, %v", data, err, file)
			}
			return
		}
		for _, o := range file.overrides {
			if _, err := path.Match(o.cgroup, ""); err != nil || o.cgroup[0] != '/' {
				t.Fatalf("%q: glob %q", data, o.cgroup)
			}
			if o.request != nil && (*o.request < 0 || *o.request > maxRequest) {
				t.Fatalf("%q: request %v", data, *o.request)
			}
			if err := o.strategy.Check(); err != nil || o.strategy.SharePoolThresholdPercent != nil {
				t.Fatalf("%q: override %+v: %v", data, o, err)
			}
		}
		if err := file.strategy.Check(); err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		again, err := Parse("again", []byte(format(file)))
		if err != nil || again.Node() != file.Node() || len(again.overrides) != len(file.overrides) {
			t.Fatalf("%q: written out as %q: %v", data, format(file), err)
		}
		for _, o := range file.overrides {
			group := strings.NewReplacer("*", "x", "?", "y").Replace(o.cgroup)
			if again.Resolve(group) != file.Resolve(group) {
				t.Fatalf("%q: %s resolves otherwise when written out", data, group)
			}
		}
	})
}

// lines counts the lines as YAML does: a carriage return ends one too.
func lines(data []byte) int {
	return 1 + strings.Count(string(data), "\n") + strings.Count(string(data), "\r")
}
