package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

var listens = regexp.MustCompile(`listen=(127\.0\.0\.1:[0-9]+)`)

func TestRunServesMetrics(t *testing.T) {
	s := newShipped(t)
	g, _ := newHog(t)
	before := files(t, g)
	s.configure("auto", g.Path)
	agent := s.start()
	changed(t, s, before, g)
	at := listens.FindStringSubmatch(agent.log.String())
	if at == nil {
		t.Fatalf("the log does not say where it listens:\n%s", agent.log)
	}
	for path, want := range map[string]string{"/metrics": "plimsoll_", "/healthz": "ok", "/readyz": "ok"} {
		text := get(t, "http://"+at[1]+path)
		if !strings.Contains(text, want) || path == "/metrics" && !strings.Contains(text, g.Path) {
			t.Errorf("%s does not have %q:\n%s", path, want, text)
		}
	}
	child := children(t, agent.cmd.Process.Pid)
	if len(child) != 1 {
		t.Fatalf("the agent has the children %v, want the one that serves the network", child)
	}
	if n := networkSockets(t, agent.cmd.Process.Pid); n != 0 {
		t.Errorf("the agent itself has %d sockets of the network", n)
	}
	if n := networkSockets(t, child[0]); n == 0 {
		t.Error("its child has none: the test sees nothing")
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", child[0]))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Uid:\t65532\t65532\t65532\t65532", "CapEff:\t0000000000000000",
		"CapPrm:\t0000000000000000"} {
		if !strings.Contains(string(status), want) {
			t.Errorf("the process that serves the network has not %q:\n%s", want, status)
		}
	}
	if err := agent.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, patience(5*time.Second), func() string {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d/fd", child[0])); err == nil {
			return "the process that serves the network outlives its agent"
		}
		return ""
	})
}

// children are those of all threads of a process.
func children(t *testing.T, pid int) (list []int) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		for _, word := range strings.Fields(string(data)) {
			n, err := strconv.Atoi(word)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, n)
		}
	}
	return list
}

// networkSockets counts a process's sockets of TCP and UDP.
func networkSockets(t *testing.T, pid int) (n int) {
	t.Helper()
	known := map[string]bool{}
	for _, table := range []string{"tcp", "tcp6", "udp", "udp6"} {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil {
			continue // no IPv6
		}
		for line := range strings.Lines(string(data)) {
			if f := strings.Fields(line); len(f) > 9 {
				known["socket:["+f[9]+"]"] = true
			}
		}
	}
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if to, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, fd.Name())); err == nil && known[to] {
			n++
		}
	}
	return n
}

func get(t *testing.T, url string) string {
	t.Helper()
	client := http.Client{Timeout: patience(5 * time.Second)}
	answer, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, answer.Status, err)
	}
	return string(text)
}
