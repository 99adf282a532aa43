package report

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFind(t *testing.T) {
	id := func(pair string) string { return strings.Repeat(pair, 32) }
	containers := []Container{
		{Cgroup: "/kubepods/pod1", Name: "default/web"},
		{Cgroup: "/kubepods/pod1/" + id("ab"), Name: "default/web/nginx"},
		{Cgroup: "/kubepods/pod1/" + id("cd"), Name: "default/web/envoy"},
		{Cgroup: "/kubepods/pod2/" + id("ce"), Name: "default/api/envoy"},
		{Cgroup: "/system.slice/docker-" + id("ef") + ".scope", Name: "db"},
		{Cgroup: "/machine.slice/libpod-" + id("0a") + ".scope/container", Name: "mail"},
		{Cgroup: "/machine.slice/libpod-" + id("0a") + ".scope", Level: "pod", Name: "scope of mail"},
		{Cgroup: "/system.slice/ssh.service", Name: "ssh.service"},
		{Cgroup: "/lab/x", Name: "/lab/x"},
		{Cgroup: "/x", Name: "/x"},
		{Cgroup: "/lab/cdcd", Name: "/lab/cdcd"},
	}
	for _, tc := range []struct {
		arg  string
		want string   // the cgroup found
		amb  []string // or the candidates
	}{
		{arg: "/lab/x", want: "/lab/x"},
		{arg: "lab/x/", want: "/lab/x"},
		{arg: "/x", want: "/x"},
		{arg: "x", want: "/x"}, // the exact path goes before the last part of /lab/x
		{arg: "default/web", want: "/kubepods/pod1"},
		{arg: "nginx", want: "/kubepods/pod1/" + id("ab")},
		{arg: "web", want: "/kubepods/pod1"},
		{arg: "ssh", want: "/system.slice/ssh.service"},
		{arg: "ssh.service", want: "/system.slice/ssh.service"},
		{arg: "db", want: "/system.slice/docker-" + id("ef") + ".scope"},
		{arg: "efef", want: "/system.slice/docker-" + id("ef") + ".scope"},
		{arg: "0a0a", want: "/machine.slice/libpod-" + id("0a") + ".scope/container"},
		{arg: id("ab"), want: "/kubepods/pod1/" + id("ab")},
		{arg: "envoy", amb: []string{"/kubepods/pod1/" + id("cd"), "/kubepods/pod2/" + id("ce")}},
		{arg: "cdcd", want: "/lab/cdcd"}, // a name goes before an ID
		{arg: "efe"},                     // too short for an ID
		{arg: "fefe"},                    // not the beginning of the ID
		{arg: ""},
		{arg: "/"},
		{arg: "nobody"},
	} {
		got, err := Find(containers, tc.arg)
		var amb *AmbiguousError
		var unknown *UnknownError
		switch {
		case tc.want != "":
			if err != nil || got.Cgroup != tc.want {
				t.Errorf("%q: got %q, %v; want %q", tc.arg, got.Cgroup, err, tc.want)
			}
		case tc.amb != nil:
			if !errors.As(err, &amb) {
				t.Errorf("%q: got %q, %v; want it ambiguous", tc.arg, got.Cgroup, err)
				continue
			}
			var list []string
			for _, c := range amb.Candidates {
				list = append(list, c.Cgroup)
				if !strings.Contains(err.Error(), c.Cgroup) {
					t.Errorf("%q: the error does not name %s: %v", tc.arg, c.Cgroup, err)
				}
			}
			if diff := cmp.Diff(tc.amb, list); diff != "" {
				t.Errorf("%q: candidates (-want +got):\n%s", tc.arg, diff)
			}
		case !errors.As(err, &unknown):
			t.Errorf("%q: got %q, %v; want it unknown", tc.arg, got.Cgroup, err)
		}
	}
}

// TestUnknownNamesCandidates: a mistyped name yields the names that contain it, or the first names, but never a
// screen full.
func TestUnknownNamesCandidates(t *testing.T) {
	containers := []Container{{Cgroup: "/b/1", Name: "web-1"}, {Cgroup: "/b/2", Name: "web-2"},
		{Cgroup: "/a", Name: "/a"}}
	for arg, want := range map[string]string{
		"we":     "such as web-1, web-2; `plimsoll status` lists the managed containers",
		"WEB":    "such as web-1, web-2; ",
		"nobody": "such as /a, web-1, web-2; ",
	} {
		_, err := Find(containers, arg)
		var unknown *UnknownError
		if !errors.As(err, &unknown) || !strings.HasPrefix(unknown.Hint(), want) {
			t.Errorf("%s: %v, want the hint %q", arg, err, want)
		}
	}
	_, err := Find(make([]Container, 1000), "x")
	var unknown *UnknownError
	if !errors.As(err, &unknown) || len(unknown.Candidates) != mostCandidates {
		t.Errorf("%d candidates", len(unknown.Candidates))
	}
	if _, err := Find(nil, "x"); !errors.As(err, &unknown) ||
		unknown.Hint() != "`plimsoll status` lists the managed containers" {
		t.Errorf("without candidates: %q", unknown.Hint())
	}
}
