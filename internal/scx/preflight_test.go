package scx

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
)

// sysfs is a fake /sys with files.
func sysfs(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755),
			os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// vacant are the files of a kernel with sched_ext, and changes to them; "-" removes a file.
func vacant(changes map[string]string) map[string]string {
	files := map[string]string{folder + "/state": "disabled\n", folder + "/enable_seq": "3\n",
		folder + "/nr_rejected": "0\n", folder + "/switch_all": "0\n"}
	for name, text := range changes {
		files[name] = text
		if text == "-" {
			delete(files, name)
		}
	}
	return files
}

// types are those of a kernel that knows the functions and operations of the scheduler, but for some.
func types(t *testing.T, o *Object, but ...string) func() (*btf.Spec, error) {
	t.Helper()
	functions, operations := o.needs()
	without := func(name string) bool { return !strings.Contains(" "+strings.Join(but, " ")+" ", " "+name+" ") }
	table := &btf.Struct{Name: opsType}
	for _, name := range operations {
		if without(name) {
			table.Members = append(table.Members, btf.Member{Name: name, Type: &btf.Pointer{Target: &btf.Void{}}})
		}
	}
	b, err := btf.NewBuilder([]btf.Type{table}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range functions {
		if without(name) {
			if _, err := b.Add(&btf.Func{Name: name, Type: &btf.FuncProto{Return: &btf.Void{}},
				Linkage: btf.GlobalFunc}); err != nil {
				t.Fatal(err)
			}
		}
	}
	raw, err := b.Marshal(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "btf")
	if err := os.WriteFile(file, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	return func() (*btf.Spec, error) { return btf.LoadSpec(file) }
}

func TestPreflight(t *testing.T) {
	o, err := Own(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		files map[string]string
		types func() (*btf.Spec, error)
		want  string // what is in the way; "" for nothing
	}{
		{"all is well", vacant(nil), types(t, o), ""},
		{"no sched_ext", nil, types(t, o), "kernel 6.18.1-test was built without CONFIG_SCHED_CLASS_EXT"},
		{"another scheduler", vacant(map[string]string{folder + "/state": "enabled\n", folder + "/root/ops": "lavd\n"}),
			types(t, o), "lavd is enabled"},
		{"lockdown", vacant(map[string]string{"kernel/security/lockdown": "none integrity [confidentiality]\n"}),
			types(t, o), "lockdown"},
		{"less lockdown", vacant(map[string]string{"kernel/security/lockdown": "none [integrity] confidentiality\n"}),
			types(t, o), ""},
		{"no types", vacant(nil), func() (*btf.Spec, error) { return nil, fs.ErrNotExist }, "no type information"},
		{"an older kernel", vacant(nil), types(t, o, "scx_bpf_dsq_insert"), "has not got scx_bpf_dsq_insert"},
		{"an operation too many", vacant(nil), types(t, o, "cgroup_set_weight"), "operations cgroup_set_weight"},
		{"a broken file", vacant(map[string]string{folder + "/enable_seq": "many\n"}), types(t, o), "parse enable_seq"},
		{"a missing file", vacant(map[string]string{folder + "/switch_all": "-"}), types(t, o), "switch_all"},
	} {
		list := machine{sys: sysfs(t, c.files), release: "6.18.1-test", types: c.types}.preflight(o)
		var bad []string
		for _, f := range list {
			if !f.OK {
				bad = append(bad, f.Detail)
			}
		}
		if got := strings.Join(bad, "; "); !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// The preflight says why a kernel has no sched_ext.
func TestLacking(t *testing.T) {
	for release, want := range map[string]string{
		"6.12.57+deb13-cloud-amd64": "built without CONFIG_SCHED_CLASS_EXT",
		"7.0.0":                     "built without CONFIG_SCHED_CLASS_EXT",
		"6.11.0":                    "since 6.12", "6.1.0-28-cloud-amd64": "since 6.12", "5.10.0": "since 6.12",
		"": "since 6.12",
	} {
		if got := (machine{release: release}).lacking(); !strings.Contains(got, want) ||
			!strings.Contains(got, release) {
			t.Errorf("%s: %s", release, got)
		}
	}
}

func TestSiblings(t *testing.T) {
	const dir = "devices/system/cpu/cpu"
	got, err := siblings(sysfs(t, map[string]string{
		dir + "0/topology/thread_siblings_list": "0,2\n", dir + "2/topology/thread_siblings_list": "0,2\n",
		dir + "1/topology/thread_siblings_list": "1\n",
	}))
	if err != nil || len(got) != 2 || got[0] != 2 || got[2] != 0 {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := siblings(sysfs(t, map[string]string{dir +
		"0/topology/thread_siblings_list": "zero\n"})); err == nil {
		t.Errorf("a broken list: %v", got)
	}
}

func TestReadRefuses(t *testing.T) {
	if o, err := Read(strings.NewReader("no ELF")); err == nil {
		t.Errorf("%+v", o)
	}
	for name, o := range map[string]Options{
		"a watchdog that the kernel refuses": {Watchdog: maxWatchdog + 1}, "one that barks at once": {Watchdog: 1},
		"a floor above the ceiling": {Floor: 0.6}, "none": {Floor: 1e-6},
	} {
		if _, err := Own(o); err == nil {
			t.Error(name)
		}
	}
}

// On a kernel that does not report new limits the scheduler loads without that callback.
func TestFit(t *testing.T) {
	for _, c := range []struct {
		but  string
		left int
	}{{"", 0}, {kernelProgCgroupSetBandwidth, 1}} {
		spec, err := loadKernel()
		if err != nil {
			t.Fatal(err)
		}
		o, err := newObject(spec)
		if err != nil {
			t.Fatal(err)
		}
		known, err := types(t, o, c.but)()
		if err != nil {
			t.Fatal(err)
		}
		before := len(spec.Programs)
		if fit(spec, known); before-len(spec.Programs) != c.left || !knowsOperations(known, second(o.needs())).OK {
			t.Errorf("without %q: %d of %d programs", c.but, len(spec.Programs), before)
		}
	}
}

func second[A, B any](_ A, b B) B { return b }
