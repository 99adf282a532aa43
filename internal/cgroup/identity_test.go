package cgroup

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"
	"testing/fstest"
)

func TestUnbearableKernels(t *testing.T) {
	for release, bad := range map[string]bool{
		"4.19.91-24.al7.x86_64":     false,
		"4.19.91-25.al7.x86_64":     false,
		"4.19.91-25.1.al7.x86_64":   true,
		"4.19.91-25.5.al7.x86_64":   true,
		"4.19.91-25.6.al7.x86_64":   false,
		"4.19.91-26.al7.x86_64":     true,
		"4.19.91-26.3.al7.x86_64":   true,
		"4.19.91-26.4.al7.x86_64":   false,
		"5.10.112-11.2.al8.x86_64":  true,
		"5.10.112-11.3.al8.x86_64":  false,
		"5.10.134-12.2.al8.x86_64":  true,
		"5.10.134-13.al8.x86_64":    false,
		"5.10.134-16.1.al8.aarch64": false,
		"6.18.44":                   false,
		"":                          false,
	} {
		if why := unbearable(release); (why != "") != bad {
			t.Errorf("%s: %q", release, why)
		}
	}
}

// TestIdentityPreflight replays the recorded behaviour of Alibaba Cloud Linux on a fake tree: such a kernel is not
// available.
func TestIdentityPreflight(t *testing.T) {
	may, mayNot := func(string) error { return nil }, func(string) error { return syscall.EROFS }
	for name, c := range map[string]struct {
		host     map[string]string
		writable func(string) error
		state    State
	}{
		"on": {map[string]string{"osrelease": "5.10.134-16.1.al8.x86_64", identitySysctl: "1"}, mayNot,
			Yes},
		"without a switch": {map[string]string{"osrelease": "4.19.91-24.al7.x86_64"}, mayNot, Yes},
		"switched off":     {map[string]string{"osrelease": "5.10.134-16.1.al8.x86_64", identitySysctl: "0"}, may, Yes},
		"off for good": {map[string]string{"osrelease": "5.10.134-16.1.al8.x86_64", identitySysctl: "0"}, mayNot,
			No},
		"crashes": {map[string]string{"osrelease": "4.19.91-25.3.al7.x86_64", identitySysctl: "0"}, may, No},
		"core scheduling": {map[string]string{"osrelease": "5.10.134-16.1.al8.x86_64", identitySysctl: "1",
			"sched_core": "1"}, may, No},
		"no release": {nil, may, Unknown},
	} {
		p := v1Probe()
		p.template["cpu.bvt_warp_ns"] = "0\n"
		host := Host{PID: 77, Files: fstest.MapFS{}, Writable: c.writable}
		for file, text := range c.host {
			host.Files.(fstest.MapFS)["proc/sys/kernel/"+file] = &fstest.MapFile{Data: []byte(text + "\n")}
		}
		if f := Probe(p, host).Get(FeatureIdentity); f.State != c.state || f.Detail == "" {
			t.Errorf("%s: %+v, want %s", name, f, c.state)
		}
	}
}

// identityFS is a tree whose groups have the file of one of the two interfaces.
type identityFS map[string]string

func (f identityFS) ReadFile(name string) ([]byte, error) {
	return fstest.MapFS(f.files()).ReadFile(name)
}
func (f identityFS) WriteFile(name string, data []byte) error {
	if _, err := f.ReadFile(name); err != nil {
		return err
	}
	f[name] = string(data)
	return nil
}
func (f identityFS) Dirs(string) ([]string, error)     { return nil, nil }
func (f identityFS) Inode(name string) (uint64, error) { _, err := f.ReadFile(name); return 1, err }
func (f identityFS) files() map[string]*fstest.MapFile {
	m := map[string]*fstest.MapFile{}
	for name, text := range f {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

// Both interfaces, as recorded: the sums 22, 18 and 9 are those of the published patches.
func TestIdentityOfAGroup(t *testing.T) {
	for file, spelled := range map[string]map[int64]string{
		"cpu.bvt_warp_ns": {2: "2", 1: "1", 0: "0", -1: "-1", -2: "-2"},
		"cpu.identity":    {2: "22", 1: "18", 0: "0", -1: "9", -2: "1"},
	} {
		fsys := identityFS{"cpu/cpu.shares": "1024\n", "cpu/a/" + file: "0\n"}
		tree, err := Detect(fsys)
		if err != nil {
			t.Fatal(err)
		}
		for grade, text := range spelled {
			if err := tree.SetIdentity("/a", grade); err != nil || fsys["cpu/a/"+file] != text {
				t.Errorf("%s: %d is written as %q, %v", file, grade, fsys["cpu/a/"+file], err)
			}
			fsys["cpu/a/"+file] += "\n"
			if got, err := tree.Identity("/a"); err != nil || got != grade {
				t.Errorf("%s: %d is read as %d, %v", file, grade, got, err)
			}
		}
		for _, bad := range []string{"", "7\n", "x\n", "3"} {
			fsys["cpu/a/"+file] = bad
			if got, err := tree.Identity("/a"); err == nil {
				t.Errorf("%s: %q is read as %d", file, bad, got)
			}
		}
		if err := tree.SetIdentity("/a", 3); err == nil {
			t.Error("3 is a grade")
		}
	}
}

// TestIdentityGate: the switch is a file of the kernel's settings, which not all such kernels have.
func TestIdentityGate(t *testing.T) {
	sysctls := identityFS{identitySysctl: "0\n"}
	tree, err := Detect(identityFS{"cpu/cpu.shares": "1024\n"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tree.IdentityEnabled(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no settings: %v", err)
	}
	tree.WithSysctls(sysctls)
	for _, on := range []bool{true, false} {
		if err := tree.EnableIdentity(on); err != nil {
			t.Fatal(err)
		}
		if got, err := tree.IdentityEnabled(); err != nil || got != on {
			t.Errorf("%v, %v after it was turned to %v (%q)", got, err, on, sysctls[identitySysctl])
		}
	}
	delete(sysctls, identitySysctl)
	if err := tree.EnableIdentity(true); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a switch that is not there: %v", err)
	}
}
