package cgroup

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// probeFS is a kernel in memory on which groups can be made. A new group gets the files of template.
type probeFS struct {
	memFS
	template  map[string]string
	mkdirErr  error
	closed    string // the only directory where groups cannot be made
	takesMore bool   // a burst above the quota, as Alibaba Cloud Linux
	made      []string
}

func (p *probeFS) Mkdir(name string) error {
	if p.mkdirErr != nil && (p.closed == "" || p.closed == path.Dir(name)) {
		return &fs.PathError{Op: "mkdir", Path: name, Err: p.mkdirErr}
	}
	for file, text := range p.template {
		p.memFS[path.Join(name, file)] = text
	}
	p.made = append(p.made, name)
	return nil
}

func (p *probeFS) Rmdir(name string) error {
	for file := range p.memFS {
		if strings.HasPrefix(file, name+"/") {
			delete(p.memFS, file)
		}
	}
	return nil
}

func (p *probeFS) WriteFile(name string, data []byte) error {
	if strings.HasSuffix(name, "burst_us") && !p.takesMore {
		burst, err := parseMicros(string(data))
		quota, err2 := parseQuotaV1(strings.TrimSpace(p.memFS[path.Join(path.Dir(name), "cpu.cfs_quota_us")]))
		if errors.Join(err, err2) == nil && burst > quota {
			return &fs.PathError{Op: "write", Path: name, Err: syscall.EINVAL}
		}
	}
	return p.memFS.WriteFile(name, data)
}

func v1Probe() *probeFS {
	return &probeFS{memFS: v1FS(), template: map[string]string{
		"cpu.cfs_quota_us": "-1\n", "cpu.cfs_period_us": "100000\n", "cpu.cfs_burst_us": "0\n", "cpu.idle": "0\n",
		"cpu.shares": "1024\n", "cgroup.procs": "",
		"cpu.stat": "nr_periods 0\nnr_throttled 0\nthrottled_time 0\nnr_bursts 0\nburst_time 0\n",
	}}
}

func v2Probe() *probeFS {
	return &probeFS{memFS: v2FS(), template: map[string]string{
		"cpu.max": "max 100000\n", "cpu.weight": "100\n", "cgroup.procs": "",
		"cpu.stat": "usage_usec 0\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n",
	}}
}

func testHost() Host {
	return Host{PID: 77, CoreSched: func() error { return syscall.ENODEV }, Files: fstest.MapFS{
		"proc/sys/fs/inotify/max_user_watches":   {Data: []byte("8192\n")},
		"proc/sys/fs/inotify/max_user_instances": {Data: []byte("128\n")},
		"sys/devices/system/cpu/online":          {Data: []byte("0-1\n")},
		"sys/kernel/sched_ext/state":             {Data: []byte("enabled\n")},
		"sys/kernel/sched_ext/root/ops":          {Data: []byte("layered\n")},
		"sys/kernel/sched_ext/switch_all":        {Data: []byte("1\n")},
		"proc/1/stat":                            {},
	}}
}

func states(found Features) map[string]State {
	m := map[string]State{}
	for _, f := range found {
		m[f.Name] = f.State
	}
	return m
}

func TestProbeV1(t *testing.T) {
	fsys := v1Probe()
	fsys.memFS["cpu/lab/a/inner/cpu.cfs_quota_us"] = "40000\n" // part of what a may use
	fsys.memFS["cpu/lab/a/inner/cpu.cfs_period_us"] = "100000\n"
	fsys.memFS["cpu/plimsoll-probe-5/cpu.shares"] = "1024\n" // of a probe that was killed
	fsys.memFS["cpu/plimsoll-probe-1/cpu.shares"] = "1024\n" // of one that runs
	want := map[string]State{
		FeatureVersion: Yes, FeatureController: Yes, FeatureWritable: Yes, FeatureBandwidth: Yes, FeatureBurst: Yes,
		FeatureAboveQuota: No, FeatureCounters: Yes, FeatureKeepsBurst: Yes, FeatureRefill: Unknown, FeatureIdle: Yes,
		FeatureIdentity: No, FeaturePartition: No, FeatureUsage: Yes, FeatureSchedExt: Yes,
		FeatureEnforced: No, FeaturePSI: No, FeatureCoreSched: No, FeatureInotify: Yes, FeatureWithinNode: Yes,
	}
	found := Probe(fsys, testHost())
	if diff := cmp.Diff(want, states(found)); diff != "" {
		t.Error(diff)
	}
	names, _ := fsys.Dirs("cpu")
	if diff := cmp.Diff([]string{"lab", "plimsoll-probe-1"}, names); diff != "" {
		t.Errorf("groups left behind: %s", diff)
	}
	if diff := cmp.Diff([]string{"cpu/plimsoll-probe-77"}, fsys.made); diff != "" {
		t.Error(diff)
	}
	if d := found.Get(FeatureWithinNode).Detail; d != "1 topmost limited groups may use 0.50 of 2 CPUs" {
		t.Error(d)
	}
}

func TestProbeV2WithoutBurst(t *testing.T) {
	got := states(Probe(v2Probe(), testHost()))
	for name, want := range map[string]State{FeatureBandwidth: Yes, FeatureBurst: No, FeatureAboveQuota: No,
		FeatureCounters: No, FeatureKeepsBurst: No, FeatureIdle: No, FeaturePartition: Unknown} {
		if got[name] != want {
			t.Errorf("%s is %s, want %s", name, got[name], want)
		}
	}
}

func TestProbeAnswers(t *testing.T) {
	for _, tt := range []struct {
		name    string
		feature string
		want    State
		change  func(*probeFS, fstest.MapFS)
	}{
		{"a burst that is taken, and not tried", FeatureAboveQuota, Unknown,
			func(p *probeFS, _ fstest.MapFS) { p.takesMore = true }},
		{"burst switched off", FeatureBurst, No, func(_ *probeFS, h fstest.MapFS) {
			h["proc/sys/kernel/sched_cfs_bw_burst_enabled"] = &fstest.MapFile{Data: []byte("0\n")}
		}},
		{"read-only", FeatureWritable, No, func(p *probeFS, _ fstest.MapFS) { p.mkdirErr = syscall.EROFS }},
		{"not root", FeatureWritable, No, func(p *probeFS, _ fstest.MapFS) { p.mkdirErr = syscall.EACCES }},
		{"no room", FeatureWritable, Unknown, func(p *probeFS, _ fstest.MapFS) { p.mkdirErr = syscall.ENOSPC }},
		{"no scratch", FeatureAboveQuota, Unknown, func(p *probeFS, _ fstest.MapFS) { p.mkdirErr = syscall.EROFS }},
		{"no scratch, but the file", FeatureBandwidth, Yes, func(p *probeFS, _ fstest.MapFS) {
			p.mkdirErr = syscall.EROFS
			p.memFS["cpu/cpu.cfs_quota_us"] = "-1\n"
		}},
		{"Group Identity", FeatureIdentity, Yes, func(p *probeFS, h fstest.MapFS) {
			p.template["cpu.bvt_warp_ns"] = "0\n"
			h["proc/sys/kernel/osrelease"] = &fstest.MapFile{Data: []byte("5.10.134-16.al8.x86_64\n")}
		}},
		{"part of the tasks", FeatureEnforced, Yes, func(_ *probeFS, h fstest.MapFS) {
			h["sys/kernel/sched_ext/switch_all"] = &fstest.MapFile{Data: []byte("0\n")}
		}},
		{"PSI", FeaturePSI, Yes, func(_ *probeFS, h fstest.MapFS) { h["proc/pressure/cpu"] = &fstest.MapFile{} }},
		{"no sched_ext", FeatureEnforced, Yes, func(_ *probeFS, h fstest.MapFS) {
			delete(h, "sys/kernel/sched_ext/state")
		}},
		{"few watches", FeatureInotify, No, func(_ *probeFS, h fstest.MapFS) {
			h["proc/sys/fs/inotify/max_user_watches"].Data = []byte("3\n")
		}},
		{"limits above the node", FeatureWithinNode, No, func(p *probeFS, _ fstest.MapFS) {
			p.memFS["cpu/lab/a/cpu.cfs_quota_us"] = "210000\n"
		}},
		{"no cpuacct", FeatureUsage, No, func(p *probeFS, _ fstest.MapFS) {
			delete(p.memFS, "cpuacct/cpuacct.usage")
		}},
		{"no controller", FeatureController, No, func(p *probeFS, _ fstest.MapFS) { p.memFS = memFS{} }},
	} {
		fsys, host := v1Probe(), testHost()
		tt.change(fsys, host.Files.(fstest.MapFS))
		if got := Probe(fsys, host).Get(tt.feature); got.State != tt.want {
			t.Errorf("%s: %+v, want %s", tt.name, got, tt.want)
		}
	}
}

// bugProbe divides the burst by 1000 at each write of cpu.max.
type bugProbe struct{ *probeFS }

func (b bugProbe) WriteFile(name string, data []byte) error {
	return burstBug{b.memFS}.WriteFile(name, data)
}

func TestProbeKeepsBurst(t *testing.T) {
	for _, tt := range []struct {
		want State
		wrap func(*probeFS) FS
	}{
		{Yes, func(p *probeFS) FS { return p }},
		{No, func(p *probeFS) FS { return bugProbe{p} }},
	} {
		p := v2Probe()
		p.template["cpu.max.burst"] = "0\n"
		if got := Probe(tt.wrap(p), testHost()).Get(FeatureKeepsBurst); got.State != tt.want {
			t.Errorf("%+v, want %s", got, tt.want)
		}
	}
}

// TestProbeInAPod: a process that may not write in the root probes beside its own group, and leaves nothing there.
func TestProbeInAPod(t *testing.T) {
	for _, tt := range []struct {
		fs     *probeFS
		tasks  string
		closed string
		made   string
	}{
		{v1Probe(), "cpu/lab/a/tasks", "cpu", "cpu/lab/plimsoll-probe-77"},
		{v2Probe(), "lab/a/cgroup.threads", ".", "lab/plimsoll-probe-77"},
	} {
		tt.fs.mkdirErr, tt.fs.closed = syscall.EACCES, tt.closed
		unseen := Probe(tt.fs, testHost()).Get(FeatureWritable)
		tt.fs.memFS[tt.tasks] = "12\n77\n"
		found := Probe(tt.fs, testHost())
		if unseen.State != No || !found.Has(FeatureWritable) || found.Get(FeatureKeepsBurst).State == Unknown {
			t.Errorf("unseen %+v, found %+v", unseen, found)
		}
		if diff := cmp.Diff([]string{tt.made}, tt.fs.made); diff != "" {
			t.Error(diff)
		}
		for name := range tt.fs.memFS {
			if strings.HasPrefix(name, tt.made) {
				t.Errorf("%s is left behind", name)
			}
		}
	}
}

func TestProbeAsksNothing(t *testing.T) {
	for _, f := range Probe(memFS{}, Host{}) {
		if f.State == Yes {
			t.Errorf("without files and host, %+v", f)
		}
	}
}
