//go:build kube

package kube

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
	"plimsoll/lab/peers"
)

// runner is an agent that writes limits, run as a process of the node.
type runner interface {
	begin()
	processes() []int // all that belong to it
	end(syscall.Signal)
}

// koordlet is the peer, with a state of its own.
type koordlet struct {
	t       *testing.T
	percent int // cpuBurstPercent
	cmd     *exec.Cmd
	log     string
	done    chan struct{}
}

// koordletBinary builds it, once a version.
func koordletBinary(t *testing.T) string {
	t.Helper()
	out, err := command(nil, "../../lab/peers/koordlet.sh")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// nodeSLO is what koord-manager would make of the ConfigMap: it is koordlet's only source of a policy for the node. The
// kinds of objects are those of its module.
func nodeSLO(t *testing.T, burstPercent int) {
	t.Helper()
	crds, err := filepath.Glob(filepath.Join(filepath.Dir(koordletBinary(t)), "crd/bases/*.yaml"))
	if err != nil || len(crds) == 0 {
		t.Fatal("no kinds of objects beside koordlet", err)
	}
	for _, file := range crds {
		kubectl(t, "apply", "--server-side", "-f", file)
	}
	kubectl(t, "wait", "--for=condition=Established", "--timeout=30s", "crd", "nodeslos.slo.koordinator.sh")
	const at = "/apis/slo.koordinator.sh/v1alpha1/nodeslos"
	burst := object{"policy": "auto", "cpuBurstPercent": burstPercent, "cfsQuotaBurstPercent": raisePercent,
		"cfsQuotaBurstPeriodSeconds": -1, "sharePoolThresholdPercent": 100}
	o := object{"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeSLO", "metadata": object{"name": nodeName},
		"spec": object{"cpuBurstStrategy": burst}}
	eventually(t, wait, func() string {
		_, err := request(http.MethodPost, at, "", o)
		if conflicts(err) {
			_, err = request(http.MethodPatch, at+"/"+nodeName, "merge", object{"spec": o["spec"]})
		}
		if err != nil {
			return err.Error()
		}
		return ""
	})
}

// begin starts koordlet as its DaemonSet does, but for the folders, which are the host's own here,
// and waits until it runs.
func (k *koordlet) begin() {
	k.t.Helper()
	binary := koordletBinary(k.t)
	nodeSLO(k.t, k.percent)
	dir, err := os.MkdirTemp(scratch, "koordlet")
	if err != nil {
		k.t.Fatal(err)
	}
	k.log = filepath.Join(scratch, "log", filepath.Base(dir)) // where PLIMSOLL_KEEP_LOGS keeps it
	log, err := os.Create(k.log)
	if err != nil {
		k.t.Fatal(err)
	}
	defer log.Close()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"tsdb", "hooks", "prediction", "xpu"} { // its DaemonSet's volumes
		if err := os.Mkdir(at(name), 0o700); err != nil {
			k.t.Fatal(err)
		}
	}
	k.cmd = exec.Command("nsenter", inside, binary, "-feature-gates=CPUBurst=true",
		"-v="+strconv.Itoa(koordletVerbosity), "-addr=127.0.0.1:9316", "-cgroup-root-dir="+cgrouptest.Root()+"/",
		"-tsdb-path="+at("tsdb"), "-var-lib-kubelet-dir="+filepath.Join(scratch, "kubelet/root")+"/",
		"-var-run-root-dir="+filepath.Dir(nriSocket)+"/", "-runtime-hooks-nri-socket-path="+filepath.Base(nriSocket),
		"-containerd-endpoint="+filepath.Join(scratch, "containerd/containerd.sock"),
		"-runtime-hooks-addr="+at("koordlet.sock"), "-runtime-hooks-host-endpoint="+at("koordlet.sock"),
		"-runtime-hooks-config-path="+at("hooks"), "-prediction-checkpoint-filepath="+at("prediction"),
		"-pod-resources-proxy-path="+at("pod-resources"), "-xpu-device-infos-dir="+at("xpu"))
	k.cmd.Env = append(os.Environ(), "agent_mode=hostMode", "NODE_NAME="+nodeName,
		"KUBECONFIG="+filepath.Join(scratch, "pki/admin.kubeconfig"))
	k.cmd.Stdout, k.cmd.Stderr, k.done = log, log, make(chan struct{})
	k.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := k.cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	go func() {
		_ = k.cmd.Wait()
		close(k.done)
	}()
	k.t.Cleanup(func() { k.end(syscall.SIGKILL) })
	eventually(k.t, wait, func() string {
		if strings.Contains(k.said(), "Start daemon successfully") {
			return ""
		}
		select {
		case <-k.done:
			k.t.Fatalf("koordlet does not start:\n%s", k.said())
		default:
		}
		return "koordlet has not started"
	})
}

// koordletVerbosity is that of its chart.
const koordletVerbosity = 4

func (k *koordlet) said() string {
	text, err := os.ReadFile(k.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (k *koordlet) processes() []int { return []int{k.cmd.Process.Pid} }

func (k *koordlet) end(s syscall.Signal) {
	k.t.Helper()
	select {
	case <-k.done:
		return
	default:
	}
	_ = k.cmd.Process.Signal(s)
	select {
	case <-k.done:
	case <-time.After(wait):
		k.t.Errorf("koordlet does not end on %v", s)
		_ = k.cmd.Process.Kill()
		<-k.done
	}
}

// shipped is Plimsoll with its lease beside it, as its DaemonSet has it.
type shipped struct {
	*agent
	lease string // the program
	keeps *exec.Cmd
}

// newShipped has not begun yet.
func newShipped(t *testing.T) *shipped {
	t.Helper()
	s := &shipped{lease: filepath.Join(t.TempDir(), "plimsoll-lease")}
	build := exec.Command("go", "build", "-o", s.lease, "plimsoll/cmd/plimsoll-lease")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if _, err := output(build); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("strategy: {policy: auto, cfsQuotaBurstPercent: %d, sharePoolThresholdPercent: 100, "+
		"startupSeconds: 0}\n", raisePercent)
	s.agent = newAgent(t, config, append(following(), "--nri-socket", nriSocket)...)
	s.busy = true // as the peer
	return s
}

func (s *shipped) begin() {
	s.t.Helper()
	s.start()
	if s.keeps != nil {
		return // it outlives an agent
	}
	s.keeps = exec.Command(s.lease, "--state-dir", s.state)
	s.keeps.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	s.keeps.Stderr = s.log
	if err := s.keeps.Start(); err != nil {
		s.t.Fatal(err)
	}
	keeps := s.keeps
	s.t.Cleanup(func() {
		_ = keeps.Process.Signal(syscall.SIGTERM)
		_ = keeps.Wait()
	})
}

func (s *shipped) processes() []int { return append(family(s.pid()), s.keeps.Process.Pid) }

func (s *shipped) end(signal syscall.Signal) { s.stop(signal) }

// family are a process and its children.
func family(pid int) []int {
	list := []int{pid}
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, thread := range threads {
		text, _ := os.ReadFile(thread) // a thread may be gone
		for _, word := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				list = append(list, family(child)...)
			}
		}
	}
	return list
}

// used is the CPU time of processes, to the clock tick.
func used(t *testing.T, pids []int) (sum time.Duration) {
	t.Helper()
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			t.Fatal(err)
		}
		// proc(5): from the state on
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		for _, f := range fields[11:13] {
			ticks, err := strconv.ParseInt(f, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += time.Duration(ticks) * 10 * ms // USER_HZ is 100
		}
	}
	return sum
}

// costs measures an agent while something is done.
func costs(t *testing.T, r runner, do func()) *peers.Cost {
	t.Helper()
	pids := r.processes()
	before, begin := used(t, pids), time.Now()
	do()
	c := &peers.Cost{CPUs: (used(t, pids) - before).Seconds() / time.Since(begin).Seconds()}
	for _, pid := range pids {
		c.RSS += int64(resident(t, pid))
	}
	return c
}
