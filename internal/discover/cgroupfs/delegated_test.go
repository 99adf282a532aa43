package cgroupfs

import (
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"github.com/fsnotify/fsnotify"

	"plimsoll/internal/config"
	"plimsoll/internal/workload"
)

// TestAUserMakesManyGroups: in a group that belongs to a user some groups are followed and no more;
// those of others are.
func TestAUserMakesManyGroups(t *testing.T) {
	m := newMemory("/user/app/a", "/user/app/b", "/lab/a")
	m.owners = map[string]uint32{"user": 1000, "user/app": 1000, "user/app/a": 1000}
	var log strings.Builder
	s := scanner(t, m, Options{Resolver: include(t, "/lab/*", "/user/app/*"),
		Log: slog.New(slog.NewTextHandler(&log, nil))})
	user := s.nodes["/user"].user
	if user.groups != 3 || s.nodes["/user/app/a"].user != user || s.nodes["/lab/a"].user != nil {
		t.Fatalf("%+v", user)
	}
	taken(s)
	user.groups = mostOfUser - 1
	expect := func(change func(), want ...string) {
		t.Helper()
		change()
		for range 2 {
			if err := s.Rescan(); err != nil {
				t.Fatal(err)
			}
		}
		expectEvents(t, s, want...)
	}
	expect(func() { m.mkdir("/user/app/aa", "/user/app/c", "/user/app/d/e", "/lab/b") }, "appeared /lab/b",
		"appeared /user/app/aa")
	expect(func() { m.rmdir("/user/app/a") }, "vanished /user/app/a", "appeared /user/app/c")
	expect(func() { m.rmdir("/user") }, "vanished /user/app/aa", "vanished /user/app/b", "vanished /user/app/c")
	if n := strings.Count(log.String(), "\n"); n != 1 || user.groups != mostOfUser-1-3 {
		t.Errorf("%d groups are left, and the log has %s", user.groups, log.String())
	}
}

// TestAGroupIsGivenToAUser: root makes a group, and gives it to a user only after the agent has seen it. The groups
// that are in it by then, and those that the user makes, are the user's.
func TestAGroupIsGivenToAUser(t *testing.T) {
	m := newMemory("/slice/user/app", "/slice/root")
	s := scanner(t, m, Options{})
	m.owners = map[string]uint32{"slice/user": 1000, "slice/user/app": 1000, "slice/user/app/a": 1000,
		"slice/user/b": 1000}
	m.mkdir("/slice/user/app/a", "/slice/user/b")
	if err := s.Rescan(); err != nil {
		t.Fatal(err)
	}
	user := s.nodes["/slice/user"].user
	for _, group := range []string{"/slice/user/app", "/slice/user/app/a", "/slice/user/b"} {
		if s.nodes[group].user != user {
			t.Errorf("%s: %+v", group, s.nodes[group].user)
		}
	}
	if user == nil || user.groups != 3 || s.nodes["/slice"].user != nil || s.nodes["/slice/root"].user != nil {
		t.Errorf("%+v", user)
	}
}

// TestDelegated: groups below one that a user owns are told apart, whatever the user names them, and have nothing of
// what the names say. A container whose own group belongs to its user, in a user namespace, is its pod's.
func TestDelegated(t *testing.T) {
	const pod = "/podu1"
	container, scope := "/"+anID, "/docker-"+anID+".scope"
	m := newMemory("/user/kubepods"+pod+container, "/user"+scope, "/kubepods"+pod+container)
	m.owners = map[string]uint32{"user": 1000, "user/kubepods": 1000, "user/kubepods" + pod: 1000, "user" + scope: 1000,
		"user/kubepods" + pod + container: 1000, "kubepods" + pod + container: 100000}
	h := newHost(t)
	h.put(hostConfig+anID+"/hostconfig.json", `{"NanoCpus":500000000}`)
	h.put(hostConfig+anID+"/config.v2.json", `{"Name":"/web"}`)
	f, err := config.Parse("test", []byte("colocation: {enable: true, kubeQOS: true}"))
	if err != nil {
		t.Fatal(err)
	}
	pods, err := scanner(t, m, Options{Resolver: f, Sources: HostSources(h.root)}).Pods()
	if err != nil || len(pods) != 3 {
		t.Fatalf("%+v, %v", pods, err)
	}
	for _, p := range pods {
		c, users := p.Containers[0], strings.HasPrefix(p.Containers[0].Path, "/user/")
		if p.Delegated != users || (c.Class == workload.ClassNone) != users || (c.Name != "web") != users ||
			(c.Declared == nil) != users {
			t.Errorf("%+v", p)
		}
	}
}

// TestAUserMakesOneMore: inotify tells of one group more than are followed.
func TestAUserMakesOneMore(t *testing.T) {
	m := newMemory("/user/app")
	m.owners = map[string]uint32{"user": 1000}
	w := &scarce{free: 100, watched: map[string]bool{}}
	s := scanner(t, m, Options{})
	s.watcher, s.base = w, "/base"
	if err := s.Rescan(); err != nil {
		t.Fatal(err)
	}
	user := s.nodes["/user"].user
	for _, groups := range []int{mostOfUser - 1, mostOfUser} {
		name, followed := "/user/app/"+strconv.Itoa(groups), groups < mostOfUser
		user.groups = groups
		m.mkdir(name)
		s.notice(fsnotify.Event{Name: "/base" + name, Op: fsnotify.Create})
		if is := s.nodes[name] != nil; is != followed {
			t.Errorf("beside %d others a group is followed: %v", groups, is)
		}
	}
	if w.watched["/base/user/app"] {
		t.Error("each event of a user with too many groups would have them listed")
	}
}
