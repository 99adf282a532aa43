package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// State is the answer to the question whether a feature is there.
type State string

// The three answers. Unknown is none of the other two: it was not possible to find out, and Detail says why.
const (
	Yes     State = "yes"
	No      State = "no"
	Unknown State = "unknown"
)

// Feature is something that a kernel or mount can do or not.
type Feature struct {
	Name   string `json:"name"`             // of the feature
	State  State  `json:"state"`            // `yes`, `no` or `unknown`
	Detail string `json:"detail,omitempty"` // what was found, or why it is not known
	Since  string `json:"since,omitempty"`  // the first mainline kernel that has it
	Source string `json:"source,omitempty"` // the commit or the kernel's function
}

// The features.
const (
	FeatureVersion    = "cgroup-version"
	FeatureController = "cpu-controller"
	FeatureWritable   = "writable"
	FeatureBandwidth  = "bandwidth"
	FeatureBurst      = "burst"
	FeatureAboveQuota = "burst-above-quota"
	FeatureCounters   = "burst-counters"
	FeatureKeepsBurst = "burst-survives-quota"
	FeatureRefill     = "refill-on-rewrite"
	FeatureIdle       = "idle"
	FeatureIdentity   = "group-identity"
	FeaturePartition  = "cpuset-partition"
	FeatureUsage      = "usage"
	FeatureSchedExt   = "sched-ext"
	FeatureEnforced   = "limits-enforced"
	FeaturePSI        = "psi"
	FeatureCoreSched  = "core-scheduling"
	FeatureInotify    = "inotify"
	FeatureWithinNode = "limits-within-node"
)

const (
	scratchPrefix  = "plimsoll-probe-"
	subtreeControl = "cgroup.subtree_control"
)

// known is where a feature comes from.
type known struct{ since, source string }

func origin(name string) known {
	return map[string]known{
		FeatureController: {"4.15 (v2)", "0d5936344f30"},
		FeatureBandwidth:  {"3.2", "ab84d31e1550"},
		FeatureBurst:      {"5.14", "f4183717b370"},
		FeatureAboveQuota: {"", "kernel/sched/core.c, tg_set_cfs_bandwidth"},
		FeatureCounters:   {"5.16", "bcb1704a1ed2"},
		FeatureKeepsBurst: {"6.10", "49217ea147df"},
		FeatureRefill:     {"", "kernel/sched/core.c, tg_set_cfs_bandwidth"},
		FeatureIdle:       {"5.15", "304000390f88"},
		FeatureSchedExt:   {"6.12", "kernel/sched/ext.c"},
		FeaturePSI:        {"4.20", "kernel/sched/psi.c"},
		FeatureCoreSched:  {"5.14", "7ac592aa35a6"},
		FeaturePartition:  {"6.7", "kernel/cgroup/cpuset.c, cpuset.cpus.exclusive"},
		FeatureIdentity:   {"", "Alibaba Cloud Linux, Anolis"},
	}[name]
}

// Features is what Probe found.
type Features []Feature

// Get returns one feature. A feature that was not probed is Unknown.
func (found Features) Get(name string) Feature {
	for _, f := range found {
		if f.Name == name {
			return f
		}
	}
	return feature(name, Unknown, "not probed")
}

// Has says whether a feature is certainly there.
func (found Features) Has(name string) bool { return found.Get(name).State == Yes }

// Probe finds out what the kernel and the mount can do. What only a write can show is tried in a scratch group,
// plimsoll-probe-PID, which Probe removes. Probe takes less than a third of a second on mainline, and very little where
// the host is Quick.
func Probe(fsys FS, host Host) Features {
	p := &prober{fs: fsys, host: host}
	p.version()
	if p.tree == nil {
		return append(p.found, hostFeatures(host)...)
	}
	p.makeScratch()
	defer p.removeScratch()
	p.bandwidth()
	p.burst()
	p.add(FeatureRefill, p.refill)
	p.others()
	p.usage()
	p.found = append(p.found, hostFeatures(host)...)
	p.add(FeatureInotify, p.inotify)
	p.add(FeatureWithinNode, p.withinNode)
	return p.found
}

type prober struct {
	fs      FS
	host    Host
	tree    *Tree
	scratch string // the scratch group, "" where there is none
	why     error  // why there is none
	found   Features
}

func feature(name string, state State, detail string) Feature {
	from := origin(name)
	return Feature{Name: name, State: state, Detail: detail, Since: from.since, Source: from.source}
}

func (p *prober) say(name string, state State, format string, args ...any) {
	p.found = append(p.found, feature(name, state, fmt.Sprintf(format, args...)))
}

func (p *prober) add(name string, ask func() (State, string)) {
	state, detail := ask()
	p.found = append(p.found, feature(name, state, detail))
}

func (p *prober) version() {
	tree, err := Detect(p.fs)
	if err != nil {
		p.say(FeatureVersion, Unknown, "%v", err)
		p.say(FeatureController, No, "%v", err)
		return
	}
	p.tree = tree
	detail := tree.Version().String()
	if _, err := p.fs.Inode("unified/cgroup.controllers"); err == nil && tree.version == V1 {
		detail = "v1, hybrid: the cgroup2 mount at unified has no cpu controller"
	}
	p.say(FeatureVersion, Yes, "%s", detail)
	p.say(FeatureController, Yes, "%s", path.Join("/", tree.cpu))
}

// maker is an FS on which groups can be made.
type maker interface {
	Mkdir(name string) error
	Rmdir(name string) error
}

var errCannotMake = errors.New("groups cannot be made here")

// sweep removes the scratch groups of probes that were killed.
func (p *prober) sweep(m maker, below string) {
	groups, err := p.tree.Children(below)
	if err != nil {
		return
	}
	for _, group := range groups {
		pid, ours := strings.CutPrefix(path.Base(group), scratchPrefix)
		if !ours {
			continue
		}
		if _, err := fs.Stat(p.host.Files, "proc/"+pid); errors.Is(err, fs.ErrNotExist) {
			_ = m.Rmdir(p.tree.Dir(group)) // a live process in it keeps it
		}
	}
}

// makeScratch makes the scratch group, and says whether this process may write. The group's place is below the root.
// The root has mode 0555, so a process without CAP_DAC_OVERRIDE may not write there. Then the place is beside this
// process's own group: a pod may make groups there.
func (p *prober) makeScratch() {
	m, ok := p.fs.(maker)
	if !ok {
		p.why = errCannotMake
		p.say(FeatureWritable, Unknown, "%v", p.why)
		return
	}
	p.makeBelow(m, "/")
	if errors.Is(p.why, fs.ErrPermission) {
		if own := p.own(); own != "" {
			p.makeBelow(m, path.Dir(own))
		}
	}
	switch {
	case p.why == nil:
		p.say(FeatureWritable, Yes, "%s", "groups can be made and written")
	case errors.Is(p.why, syscall.EROFS):
		p.say(FeatureWritable, No, "the mount is read-only: %v", p.why)
	case errors.Is(p.why, fs.ErrPermission):
		p.say(FeatureWritable, No, "not permitted, run as root: %v", p.why)
	default:
		p.say(FeatureWritable, Unknown, "%v", p.why)
	}
}

func (p *prober) makeBelow(m maker, group string) {
	p.sweep(m, group)
	scratch := path.Join(group, scratchPrefix+strconv.Itoa(p.host.PID))
	if p.why = m.Mkdir(p.tree.Dir(scratch)); p.why == nil {
		p.scratch = scratch
	}
}

// own is the group that we are in; "" if it is the root, or not seen.
func (p *prober) own() (found string) {
	p.walk("/", func(group string) bool {
		if found != "" {
			return false
		}
		tasks, err := p.tree.Tasks(group)
		if err == nil && slices.Contains(tasks, p.host.PID) {
			found = group
		}
		return true
	})
	return found
}

func (p *prober) removeScratch() {
	if p.scratch != "" {
		_ = p.fs.(maker).Rmdir(p.tree.Dir(p.scratch)) // what is left, the next probe sweeps
	}
}

// witness is a group whose files show what the kernel supports. It is the scratch group, or the root on v1. On v2 the
// root has no limits, so it is a child of the root that has some.
func (p *prober) witness() (string, error) {
	if p.tree.version == V1 {
		if p.scratch != "" {
			return p.scratch, nil
		}
		return "/", nil
	}
	candidates := []string{p.scratch}
	if p.scratch == "" {
		candidates, _ = p.tree.Children("/")
	}
	for _, group := range candidates {
		if _, err := p.fs.Inode(path.Join(p.tree.Dir(group), "cpu.weight")); err == nil {
			return group, nil
		}
	}
	return "", fmt.Errorf("no group has the cpu controller: %s of the root does not list cpu", subtreeControl)
}

// file says whether one of the files is there.
func (p *prober) file(names ...string) (State, string) {
	group, err := p.witness()
	if err != nil {
		return Unknown, err.Error()
	}
	for _, name := range names {
		_, err := p.fs.Inode(path.Join(p.tree.Dir(group), name))
		if err == nil {
			return Yes, name
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return Unknown, err.Error()
		}
	}
	return No, "no " + strings.Join(names, " or ")
}

func (p *prober) bandwidth() {
	limit := "cpu.max"
	if p.tree.version == V1 {
		limit = "cpu.cfs_quota_us"
	}
	p.add(FeatureBandwidth, func() (State, string) { return p.file(limit) })
}

func (p *prober) others() {
	p.add(FeatureIdle, func() (State, string) { return p.file("cpu.idle") })
	p.add(FeatureIdentity, p.identity)
	p.add(FeaturePartition, p.partition)
}

func (p *prober) partition() (State, string) {
	if p.tree.version == V1 {
		return No, "cgroup v2 only"
	}
	state, detail := p.file("cpuset.cpus.exclusive")
	enabled, err := p.fs.ReadFile(subtreeControl)
	if state == No && err == nil && !containsWord(string(enabled), "cpuset") {
		return Unknown, subtreeControl + " of the root does not list cpuset"
	}
	return state, detail
}

func (p *prober) usage() {
	switch t := p.tree; {
	case t.version == V2:
		p.say(FeatureUsage, Yes, "cpu.stat usage_usec")
	case t.acct == "":
		p.say(FeatureUsage, No, "cpuacct is not mounted: use is measured through the threads")
	case t.acct == t.cpu:
		p.say(FeatureUsage, Yes, "cpuacct is mounted together with cpu")
	default:
		p.say(FeatureUsage, Yes,
			"cpuacct is a hierarchy of its own: a group that is in cpu alone is measured through its threads")
	}
}
