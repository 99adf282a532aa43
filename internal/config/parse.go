package config

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"plimsoll/internal/workload"
)

// maxRequest bounds a request in CPUs: NR_CPUS is at most 8192 on every architecture.
const maxRequest = 8192

// Parse reads a configuration file; name is what errors call it. An error is Errors: all faults of the file.
func Parse(name string, data []byte) (*File, error) {
	r := reader{name}
	body, err := r.document(data)
	if err != nil {
		return nil, collect(err)
	}
	f := &File{}
	if body == nil {
		return f, nil
	}
	var include []override
	var colocation ast.Node
	experimental := false
	err = r.mapping("", body, fields{
		{"strategy", r.optional(func(field string, n ast.Node) error {
			return r.mapping(field, n, r.strategy(&f.strategy.Patch, ofNode))
		})},
		{"reserve", r.reserve(f)},
		{"tenants", r.tenants(&f.tenants)},
		{"experimental", r.flag(func(on bool) { experimental = on })},
		{"colocation", r.optional(func(field string, n ast.Node) error {
			colocation = n
			return r.colocation(&f.strategy.Colocation)(field, n)
		})},
		{"overrides", r.optional(func(field string, n ast.Node) error {
			return r.sequence(field, n, func(field string, n ast.Node) error {
				o, err := r.override(field, n)
				f.overrides = append(f.overrides, o)
				return err
			})
		})},
		{"include", r.optional(func(field string, n ast.Node) error {
			return r.sequence(field, n, r.text(func(glob string) *fault {
				include = append(include, override{cgroup: glob})
				return checkGlob(glob)
			}))
		})},
	})
	if !experimental {
		err = errors.Join(err, r.experimental(f.strategy.Colocation, colocation))
	}
	if err != nil {
		return nil, collect(err)
	}
	f.overrides = append(f.overrides, include...)
	return f, nil
}

func (r reader) override(field string, n ast.Node) (override, error) {
	var o override
	named := false
	list := append(fields{{"cgroup", func(field string, n ast.Node) error {
		named = true
		return r.text(func(glob string) *fault {
			o.cgroup = glob
			return checkGlob(glob)
		})(field, n)
	}}}, r.strategy(&o.strategy, ofGroup)...)
	list = append(list,
		entry{"request", r.quantity(func(cpus float64) {
			if cpus == 0 {
				cpus = workload.LeastRequest
			}
			o.request = &cpus
		})},
		entry{"class", r.text(func(text string) *fault {
			class := workload.Class(text)
			o.class = &class
			return checkClass(text)
		})},
		entry{"exclusive", r.exclusive(func(e workload.Exclusive) { o.exclusive = &e })})
	err := r.mapping(field, n, list)
	if _, ok := n.(*ast.MappingNode); ok && !named {
		err = errors.Join(err, faultf(`such as cgroup: "/lab/*"`, "missing").at(r.name, line(n), field+".cgroup"))
	}
	return o, err
}

func (r reader) nodeOnly(field string, n ast.Node) error {
	return faultf("move it to the section strategy", "applies to the whole node").at(r.name, line(n), field)
}

func checkClass(text string) *fault {
	var classes []string
	for _, c := range workload.Classes() {
		classes = append(classes, string(c))
	}
	return oneOf(text, classes)
}

// escaped finds what systemd writes for a letter that the name of a unit may not have, such as \x2d for a dash
// (systemd.unit(5)), as it stands in the name. In a glob it matches nothing.
var escaped = regexp.MustCompile(`(?:^|[^\\])(?:\\\\)*\\x[0-9a-f]{2}`)

// checkGlob accepts what can match the path of a group other than the root.
func checkGlob(glob string) *fault {
	for _, mount := range []string{"/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup"} {
		if rest, ok := strings.CutPrefix(glob, mount+"/"); ok {
			return faultf(fmt.Sprintf("write %q", "/"+rest),
				"%q: the path begins below the mount of the cpu controller", glob)
		}
	}
	switch {
	case glob == "":
		return faultf("such as /lab/*", "is empty")
	case !strings.HasPrefix(glob, "/"):
		return faultf(fmt.Sprintf("write %q", "/"+glob), "%q does not begin with /", glob)
	case glob == "/":
		return faultf("/* names the groups below it", "the root has no limit")
	case strings.Contains(glob, "**"):
		return faultf("write one entry a level, such as /lab/* and /lab/*/*",
			"%q: ** has no meaning, and * does not cross /", glob)
	case path.Clean(glob) != glob:
		return faultf(fmt.Sprintf("write %q", path.Clean(glob)), "%q is not a plain path", glob)
	}
	if escaped.MatchString(glob) {
		return faultf(fmt.Sprintf("write '%s', in single quotes", strings.ReplaceAll(glob, `\x`, `\\x`)),
			`%s: in a glob \x is a mere x, and systemd's names have the backslash too`, glob)
	}
	if _, err := path.Match(glob, ""); err != nil {
		return faultf(`close each [ with ], and write a plain [ as \[`, "%q is not a glob", glob)
	}
	return nil
}

// CPUs reads an amount of CPU as Kubernetes spells it; false: it is none.
func CPUs(text string) (float64, bool) {
	v, bad := parseCPUs(text)
	return v, bad == nil
}

// parseCPUs reads an amount of CPU as Kubernetes spells it: "500m" or "0.5".
func parseCPUs(text string) (float64, *fault) {
	number, milli := strings.CutSuffix(text, "m")
	if strings.Trim(number, "0123456789.") != "" {
		return 0, faultf(`such as 0.5 or "500m"`, "%q is not an amount of CPU", text)
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, faultf(`such as 0.5 or "500m"`, "%q is not an amount of CPU", text)
	}
	if milli {
		v /= 1000
	}
	if v > maxRequest {
		return 0, faultf("", "%s is outside 0..%d", text, maxRequest)
	}
	return v, nil
}
