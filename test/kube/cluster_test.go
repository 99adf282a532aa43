//go:build kube

// Package kube tests the shipped binary on a real kubelet: etcd, kube-apiserver, kubelet, containerd and runc, which
// up.sh starts once for all tests. Pods are made, changed and deleted by kubectl; the effects are read from the kernel.
package kube

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cgrouptest"
)

const (
	ms = time.Millisecond

	scratch  = "/tmp/plimsoll-kube" // env.sh
	nodeName = "node1"
	inside   = "--net=/run/netns/plimsoll-kube" // of nsenter
)

// cluster is where the programs of the cluster are.
var cluster struct {
	bin    string // programs
	binary string // the agent's
	groups *cgroup.Tree
}

func TestMain(m *testing.M) {
	code, err := withCluster(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// withCluster runs between up.sh and down.sh. The cluster also goes down when this process is killed: the other end of
// the pipe is then closed.
func withCluster(run func() int) (code int, err error) {
	work, err := os.MkdirTemp("", "plimsoll")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(work)
	if cluster.binary, err = agentBinary(work); err != nil {
		return 1, err
	}
	dir := cgroup.NewDir(cgrouptest.Root())
	defer dir.Close()
	if cluster.groups, err = cgroup.Detect(dir); err != nil {
		return 1, err
	}
	built, err := command(nil, "./binaries.sh")
	if err != nil {
		return 1, err
	}
	cluster.bin = filepath.Join(strings.TrimSpace(built), "bin")
	in, out, err := os.Pipe()
	if err != nil {
		return 1, err
	}
	defer out.Close()
	begin := time.Now()
	_, err = command(in, "./up.sh")
	in.Close()
	if err != nil {
		return 1, err
	}
	up := time.Since(begin)
	code = run()
	begin = time.Now()
	if keep := os.Getenv("PLIMSOLL_KEEP_LOGS"); keep != "" {
		exec.Command("cp", "-r", filepath.Join(scratch, "log"), keep).Run()
	}
	_, err = command(nil, "./down.sh")
	fmt.Printf("cluster up in %.1f s, down in %.1f s\n", up.Seconds(), time.Since(begin).Seconds())
	return code, err
}

// agentBinary builds the agent, unless PLIMSOLL_BINARY names one.
func agentBinary(dir string) (string, error) {
	if binary := os.Getenv("PLIMSOLL_BINARY"); binary != "" {
		return filepath.Abs(binary)
	}
	binary := filepath.Join(dir, "plimsoll")
	cmd := exec.Command("go", "build", "-o", binary, "plimsoll/cmd/plimsoll")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, out)
	}
	return binary, nil
}

// command runs a program to its end and returns what it said on stdout.
func command(stdin *os.File, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	if stdin != nil { // not a typed nil
		cmd.Stdin = stdin
	}
	return output(cmd)
}

func output(cmd *exec.Cmd) (string, error) {
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, problems.String())
	}
	return string(out), err
}

func kubectlCommand(args ...string) *exec.Cmd {
	front := []string{inside, filepath.Join(cluster.bin, "kubectl"), "--kubeconfig",
		filepath.Join(scratch, "pki/admin.kubeconfig")}
	return exec.Command("nsenter", append(front, args...)...)
}

func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := output(kubectlCommand(args...))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// part starts, stops or kills one part of the cluster.
func part(t *testing.T, verb, name string) {
	t.Helper()
	if _, err := command(nil, "./part.sh", verb, name); err != nil {
		t.Fatal(err)
	}
}

// runtimeKnown waits until the kubelet has found a runtime that was restarted: it connects again in its own time, up to
// three seconds after.
func runtimeKnown(t *testing.T) {
	t.Helper()
	eventually(t, wait, func() string {
		if _, err := output(kubectlCommand("get", "--raw",
			"/api/v1/nodes/"+nodeName+"/proxy/runningpods/")); err != nil {
			return err.Error()
		}
		return ""
	})
}

// said is what a test has added to the kubelet's configuration. Once that test has ended, the next pod is made by a
// kubelet without it.
var said struct {
	line    string // with its end
	inForce bool   // its test has not ended
}

// kubeletSays adds a line to the kubelet's configuration for one test.
func kubeletSays(t *testing.T, line string) {
	t.Helper()
	allGone(t) // this kubelet must end what it has begun
	restartKubelet(t, line+"\n")
	said.inForce = true
	t.Cleanup(func() { said.inForce = false })
}

// usualKubelet undoes what an earlier test has said.
func usualKubelet(t *testing.T) {
	t.Helper()
	if !said.inForce && said.line != "" {
		restartKubelet(t, "")
	}
}

// restartKubelet has another line at the end of the configuration, in the place of what was said.
func restartKubelet(t *testing.T, line string) {
	t.Helper()
	part(t, "stop", "kubelet")
	file := filepath.Join(scratch, "kubelet/config.yaml")
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, []byte(strings.TrimSuffix(string(text), said.line)+line), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	said.line = line
	part(t, "start", "kubelet")
}

// namespace makes a namespace for one test, with what a controller would make in it.
func namespace(t *testing.T, name string) {
	t.Helper()
	if _, err := request(http.MethodPost, "/api/v1/namespaces", "",
		object{"metadata": object{"name": name}}); err != nil {
		t.Fatal(err)
	}
	account := object{"metadata": object{"name": "default"}}
	if _, err := request(http.MethodPost, "/api/v1/namespaces/"+name+"/serviceaccounts", "", account); err != nil {
		t.Fatal(err)
	}
}

// wait bounds short waits on a slow machine. After a write that failed, the kubelet tries a pod
// again at its next sync.
const wait = 90 * time.Second

// eventually waits until wrong has nothing to say any more, and returns how long that took.
func eventually(t *testing.T, within time.Duration, wrong func() string) time.Duration {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		said := wrong()
		if said == "" {
			return time.Since(begin)
		}
		if time.Since(begin) > within {
			t.Fatalf("after %v: %s", within, said)
		}
	}
}

// always checks a condition for a while.
func always(t *testing.T, during time.Duration, wrong func() string) {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < during; time.Sleep(20 * time.Millisecond) {
		if said := wrong(); said != "" {
			t.Fatalf("after %v: %s", time.Since(begin).Round(time.Millisecond), said)
		}
	}
}
