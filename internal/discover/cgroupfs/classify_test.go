package cgroupfs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestClassifyFixtures compares Classify with trees of the engines: one path a line, with its classification.
func TestClassifyFixtures(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 10 {
		t.Fatalf("fixtures: %v, %v", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
				if strings.HasPrefix(line, "#") {
					continue
				}
				f := strings.Fields(line)
				if len(f) != 4 {
					t.Fatalf("line %q has not four fields", line)
				}
				got := Classify(f[0])
				have := strings.Join([]string{f[0], string(got.Kind), dash(got.Runtime), dash(got.ID)}, " ")
				if have != line {
					t.Errorf("\n got %s\nwant %s", have, line)
				}
			}
		})
	}
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func TestClassifyEdges(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 4)
	for path, want := range map[string]Kind{
		"/":                      Plain,
		"":                       Plain,
		"/kubepods/pod":          Plain, // no UID
		"/kubepods-pod.slice":    Unit,
		"/mykubepods-pod1.slice": Unit, // another word
		"/a-pod1.slice":          Unit,
		"/a.slice/a-pods.slice/a-pods-kubepods.slice/a-pods-kubepods-pod1.slice": Pod, // --cgroup-root=/a/pods
		"/docker/" + id[1:]:                     Plain, // 63 digits
		"/docker/" + strings.ToUpper(id):        Plain,
		"/docker-" + id + ".service":            Unit,
		"/podman-" + id + ".scope":              Unit,
		"/x:unknown:" + id:                      Plain,
		"/cri-containerd:" + id:                 Plain, // no slice before the prefix
		"/default":                              Plain,
		"/default/my.service":                   Unit,
		"/lab/default/web":                      Plain, // a namespace stands at the top
		"/kubepods/burstable/podu/x.scope":      Unit,
		"/kubepods/burstable/podu/y":            Container,
		"/kubepods/besteffort/deeper/podu":      Plain,
		"/machine.slice/machine-a.scope/b":      Inside,
		"/libpod_parent/libpod-conmon-" + id:    Plain,
		"/machine-libpod_pod_" + id + "0.slice": Unit,
	} {
		if got := Classify(path).Kind; got != want {
			t.Errorf("Classify(%q) = %s, want %s", path, got, want)
		}
	}
}

// FuzzClassify: Classify never panics, and no group below a container is a container.
func FuzzClassify(f *testing.F) {
	id := strings.Repeat("f", 64)
	for _, path := range []string{"/", "//", "/kubepods/burstable/podu/c/d", "/docker/" + id, "/a:crio:" + id,
		"a\x00/..",
		"/kubepods.slice/kubepods-pod1_2.slice/crio-" + id + ".scope", "/libpod_parent/" + id + "/libpod-" + id} {
		f.Add(path, "docker/"+id)
	}
	f.Fuzz(func(t *testing.T, path, child string) {
		at := Classify(path)
		switch at.Kind {
		case Container, Pod:
			if at.ID == "" || at.Runtime == "" {
				t.Errorf("Classify(%q) = %+v: no id or runtime", path, at)
			}
		case Plain, Unit, Inside:
			if at.ID != "" {
				t.Errorf("Classify(%q) = %+v: an id", path, at)
			}
		default:
			t.Errorf("Classify(%q) = %+v", path, at)
		}
		if below := Classify(path + "/x" + child); at.Closed() && below.Kind != Inside {
			t.Errorf("%q is %s, but %q below it is %s", path, at.Kind, child, below.Kind)
		}
	})
}
