// Command table makes docs/KERNELS.md of what `plimsoll doctor --json` said in the machines of tier vm.
//
//	table [-check] FILE DIR
//
// DIR has one file for each machine, KERNEL:CGROUP.json. With -check the columns of these machines must be in FILE
// already, and nothing is written; columns of machines that did not run are left as they are in either case.
package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func main() {
	check := flag.Bool("check", false, "compare, and write nothing")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: table [-check] FILE DIR")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), flag.Arg(1), *check); err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

func run(file, dir string, check bool) error {
	old, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	said, err := read(os.DirFS(dir))
	if err != nil {
		return err
	}
	text := merge(parse(string(old)), said).markdown()
	if text == string(old) {
		return nil
	}
	if check {
		return fmt.Errorf("%s differs from what the kernels say; hint: make kernels\n%s", file, text)
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

// table is machines by feature: yes, no, or unknown.
type table map[string]map[string]string

// own are features of a machine or of its mounts, and not of its kernel.
var own = []string{"cgroup-version", "writable", "limits-enforced", "limits-within-node", "tasks-visible", "inotify",
	"nri", "usage", "psi"}

// read takes what the doctor said on each machine.
func read(dir fs.FS) (table, error) {
	t := table{}
	names, err := fs.Glob(dir, "*.json")
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("no machine said anything")
	}
	for _, name := range names {
		var doctor struct {
			Features []struct{ Name, State string } `json:"features"`
			Priority []struct {
				Mechanism string `json:"mechanism"`
				Usable    bool   `json:"usable"`
			} `json:"priority"`
		}
		data, e := fs.ReadFile(dir, name)
		if e == nil {
			e = json.Unmarshal(data, &doctor)
		}
		if e != nil {
			return nil, fmt.Errorf("%s: %w", name, e)
		}
		machine := strings.TrimSuffix(filepath.Base(name), ".json")
		for _, f := range doctor.Features {
			t.set(f.Name, machine, f.State)
		}
		for _, p := range doctor.Priority {
			t.set("colocation-"+p.Mechanism, machine, map[bool]string{true: "yes", false: "no"}[p.Usable])
		}
	}
	return t, err
}

func (t table) set(feature, machine, state string) {
	if slices.Contains(own, feature) {
		return
	}
	if t[feature] == nil {
		t[feature] = map[string]string{}
	}
	t[feature][machine] = state
}

// merge takes the new columns, and of the old ones those of other machines.
func merge(old, fresh table) table {
	ran := fresh.machines()
	for feature, row := range old {
		for machine, state := range row {
			if !slices.Contains(ran, machine) {
				fresh.set(feature, machine, state)
			}
		}
	}
	return fresh
}

// machines lists them by kernel version.
func (t table) machines() []string {
	seen := map[string]bool{}
	for _, row := range t {
		for machine := range row {
			seen[machine] = true
		}
	}
	var list []string
	for machine := range seen {
		list = append(list, machine)
	}
	slices.SortFunc(list, func(a, b string) int {
		return cmp.Or(cmp.Compare(version(a), version(b)), cmp.Compare(a, b))
	})
	return list
}

// version orders 5.10 after 5.4.
func version(machine string) int {
	release, _, _ := strings.Cut(machine, ":")
	major, minor, _ := strings.Cut(release, ".")
	a, err1 := strconv.Atoi(major)
	b, err2 := strconv.Atoi(minor)
	if err1 != nil || err2 != nil {
		return 0
	}
	return 1000*a + b
}

const head = `# Features by kernel

What ` + "`plimsoll doctor`" + ` says on Debian's kernels, made by ` + "`make kernels`" + `. The tests of tier vm fail where a kernel says
something else. The columns are kernel and cgroup version, on amd64; arm64 has the same features on 6.12 and 7.3 (tier
vm-arm64). Another kernel may have a feature by a backport, or lack it by its configuration: ask ` + "`plimsoll doctor`" + ` on
the machine. [KERNEL.md](KERNEL.md) says what each feature is for.

`

func (t table) markdown() string {
	var b strings.Builder
	machines := t.machines()
	b.WriteString(head + "| feature |")
	for _, m := range machines {
		b.WriteString(" " + strings.Replace(m, ":", " ", 1) + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(machines)) + "\n")
	var features []string
	for feature := range t {
		features = append(features, feature)
	}
	slices.Sort(features)
	for _, feature := range features {
		b.WriteString("| " + feature + " |")
		for _, m := range machines {
			b.WriteString(" " + cmp.Or(t[feature][m], "-") + " |")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// parse reads what markdown wrote.
func parse(text string) table {
	t := table{}
	var machines []string
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if !strings.HasPrefix(line, "|") || len(cells) < 2 {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case cells[0] == "feature":
			for _, m := range cells[1:] {
				machines = append(machines, strings.Replace(m, " ", ":", 1))
			}
		case strings.HasPrefix(cells[0], "---"):
		default:
			for i, state := range cells[1:] {
				if i < len(machines) && state != "-" {
					t.set(cells[0], machines[i], state)
				}
			}
		}
	}
	return t
}
