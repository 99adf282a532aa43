package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"plimsoll/internal/report"
	"plimsoll/internal/web"
)

// TestWrongUse: a mistyped command causes a hint for a person, and an exit code for a script.
func TestWrongUse(t *testing.T) {
	for args, hint := range map[string]string{
		"nosuch":       "`plimsoll help` lists the commands",
		"run --nosuch": "`plimsoll run --help` lists the flags",

		"serve --listen 127.0.0.1:0 --tls-cert a --tls-key b": "--token-file, --client-ca or --kube-auth says who may read from elsewhere",
		"pause":          "plimsoll pause CONTAINER",
		"status a b":     "plimsoll status [NAME] [flags]",
		"sched load":     "plimsoll sched load FILE.bpf.o",
		"sched nosuch":   "`plimsoll sched --help` lists the commands",
		"sched laod":     "did you mean `plimsoll sched load`?",
		"statsu":         "did you mean `plimsoll status`?",
		"plan --watch x": "a number with its unit, such as 500ms",
	} {
		if _, stderr, err := (testNode{}).run(strings.Fields(args)...); err == nil || !strings.Contains(stderr, "hint: "+hint) || strings.Contains(stderr, "\uFFFD") || exitCode(err) != exitMisused {
			t.Errorf("%s: %q, %v; want the hint %q, and exit code 2", args, stderr, err, hint)
		}
	}
	for _, args := range []string{"record web", "release web --for 0", "run --policy sometimes", "simulate exp --cgroups 2 --burst 1"} {
		if _, _, err := (testNode{}).run(strings.Fields(args)...); err == nil || exitCode(err) != exitMisused {
			t.Errorf("%s: %v; want exit code 2", args, err)
		}
	}
	if _, _, err := (testNode{}).run("plan", "--watch", "-1s"); err == nil || !strings.Contains(err.Error(), "--watch -1s") {
		t.Errorf("a plan that watches for less than nothing: %v", err)
	}
}

// TestMissingFile: whichever file is not there, the error names it, and a hint says what to do.
func TestMissingFile(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	sweep := "simulate exp --utilization 0.5 --cgroups 2 --periods 1000 --sweep burst=0,1"
	for _, args := range []string{
		"run --config FILE", "run --check-config --config FILE", "plan --config FILE", "doctor --config FILE", "diagnose web --config FILE",
		"simulate data FILE.npy --cgroups 2 --burst 1", "advise FILE.csv", sweep + " --figure FILE/x.svg",
		"history --record-dir FILE", "replay --record-dir FILE --at 2026-11-21T12:00:00Z", "sched check FILE.bpf.o", "sched load FILE.bpf.o",
		"sched swap FILE.bpf.o", "snapshot --token-file FILE", "serve --from FILE", "serve --token-file FILE",
		"serve --client-ca FILE", "serve --kube-auth --kubeconfig FILE", "wait --for-daemonset a/b --kubeconfig FILE",
	} {
		_, stderr, err := (testNode{}).run(strings.Fields(strings.ReplaceAll(args, "FILE", missing))...)
		if err == nil || !strings.Contains(stderr, "hint: ") || !strings.Contains(stderr, missing) {
			t.Errorf("%s: %q, %v", args, stderr, err)
		}
	}
}

// TestFlagValues: an error names a bad value once, with what is expected, and without the words of Go's functions.
func TestFlagValues(t *testing.T) {
	for args, want := range map[string]string{
		"record a --for 10":            "error: --for \"10\" is not a time\nplimsoll: hint: a number with its unit, such as 500ms, 30s, 10m or 1h30m\n",
		"record a --samples x":         "error: --samples \"x\" is not a whole number\nplimsoll: hint: `plimsoll record --help` lists the flags\n",
		"simulate exp --seed -1":       "error: --seed \"-1\" is not a whole number from 0 on\n",
		"simulate exp --periods 1e6":   "error: --periods \"1e6\" is not a whole number\n",
		"demo --limit x":               "error: --limit \"x\" is not a number\nplimsoll: hint: such as 0.5\n",
		"run --realtime=maybe":         "error: --realtime=\"maybe\" is neither true nor false\n",
		"advise f.npy --target 99.9":   "error: --target: 99.9 is 9990%: write 99.9% if you mean percent, or 9990%\n",
		"simulate exp --burst most":    "error: --burst: \"most\" is not a number such as 0.7, 70% or inf\n",
		"run --nosuch":                 "error: unknown flag: --nosuch\n",
		"record a --for":               "error: flag needs an argument: --for\n",
		"run --nri-socket=/x --poll=2": "error: --poll=\"2\" is neither true nor false\n",
	} {
		_, stderr, err := (testNode{}).run(strings.Fields(args)...)
		if exitCode(err) != exitMisused || !strings.Contains(stderr, "plimsoll: "+want) {
			t.Errorf("%s: %q, %v; want %q", args, stderr, err, want)
		}
		for _, inner := range []string{"strconv", "time:", "parsing"} {
			if strings.Contains(stderr, inner) {
				t.Errorf("%s: %q has %q", args, stderr, inner)
			}
		}
	}
}

// TestHelpIsInSections: every command that people see stands in one of them.
func TestHelpIsInSections(t *testing.T) {
	help, _, err := (testNode{}).run("--help")
	if err != nil {
		t.Fatal(err)
	}
	root := newRoot()
	for _, g := range root.Groups() {
		if !strings.Contains(help, "\n"+g.Title+"\n") {
			t.Errorf("the help has no section %q", g.Title)
		}
	}
	if len(root.Groups()) < 4 || !strings.Contains(help, "plimsoll plan --policy auto") {
		t.Errorf("%d sections, or no example:\n%s", len(root.Groups()), help)
	}
	for _, cmd := range root.Commands() {
		if !cmd.Hidden && cmd.GroupID == "" {
			t.Errorf("%s is in no section", cmd.Name())
		}
	}
}

// TestEachCommandHasAnExample: its help shows how it is called, and the example begins with that call.
func TestEachCommandHasAnExample(t *testing.T) {
	seen := 0
	var look func(cmd *cobra.Command)
	look = func(cmd *cobra.Command) {
		for _, child := range cmd.Commands() {
			look(child)
		}
		if cmd.Hidden || cmd.Name() == "help" || strings.Contains(cmd.CommandPath(), " completion") {
			return
		}
		seen++
		if !strings.Contains(cmd.Example, "  "+cmd.CommandPath()) {
			t.Errorf("%s has no example: %q", cmd.CommandPath(), cmd.Example)
		}
	}
	look(newRoot())
	look(newPlugin())
	if seen < 35 {
		t.Errorf("only %d commands", seen)
	}
}

// TestManual: the command for packagers writes a page for each command that people see, and completions, of both programs.
func TestManual(t *testing.T) {
	share := t.TempDir()
	if _, stderr, err := (testNode{}).run("man", share); err != nil {
		t.Fatal(err, stderr)
	}
	for file, words := range map[string]string{
		"man/man1/plimsoll.1":                          "plimsoll-status(1)",
		"man/man1/plimsoll-sched-load.1":               "--most-stall",
		"man/man1/kubectl-plimsoll-why.1":              "kubectl plimsoll why default/web",
		"bash-completion/completions/plimsoll":         "__start_plimsoll",
		"bash-completion/completions/kubectl-plimsoll": "kubectl",
		"zsh/site-functions/_plimsoll":                 "#compdef plimsoll",
		"fish/vendor_completions.d/plimsoll.fish":      "complete",
	} {
		text, err := os.ReadFile(filepath.Join(share, file))
		if plain := strings.ReplaceAll(string(text), "\\", ""); err != nil || !strings.Contains(plain, words) {
			t.Errorf("%s: %v, or no %q in it", file, err, words)
		}
	}
	if hidden, _ := filepath.Glob(filepath.Join(share, "man/man1/*spin*")); len(hidden) > 0 {
		t.Errorf("pages of hidden commands: %v", hidden)
	}
}

// TestVersion: the command says what the flag says.
func TestVersion(t *testing.T) {
	said := map[string]string{}
	for _, arg := range []string{"version", "--version"} {
		var out bytes.Buffer
		root := newRoot()
		root.SetOut(&out)
		root.SetArgs([]string{arg})
		if err := root.Execute(); err != nil {
			t.Fatal(err)
		}
		said[arg] = out.String()
	}
	if said["version"] != said["--version"] || !strings.Contains(said["version"], version) {
		t.Errorf("%q", said)
	}
}

// TestExitCodes: the exit code distinguishes wrong use, no answer, and all other errors.
func TestExitCodes(t *testing.T) {
	stands := func(a *fakeAgent) *fakeAgent { a.err = &web.Error{Msg: "the loop hangs", Code: 503}; return a }
	for _, c := range []struct {
		args  string
		agent *fakeAgent
		want  int
	}{
		{"hold", nil, exitNoAgent},
		{"report", nil, exitNoAgent},
		{"hold", stands(&fakeAgent{}), exitNoAgent},
		{"hold", &fakeAgent{err: errors.New("no right")}, exitFailed},
		{"pause nobody", &fakeAgent{}, exitFailed},
		{"run --config /nonexistent", nil, exitFailed},
	} {
		n := newNode(t)
		if c.agent != nil {
			n = n.withAgent(t, c.agent)
		}
		if _, _, err := n.run(strings.Fields(c.args)...); err == nil || exitCode(err) != c.want {
			t.Errorf("%s: exit code %d, want %d: %v", c.args, exitCode(err), c.want, err)
		}
	}
}

// TestComplain: a name in an error does not steer the terminal, and its lines stay lines.
func TestComplain(t *testing.T) {
	var b bytes.Buffer
	complain(&b, "plimsoll", "--state-dir /s", withHint(errors.New("no /lab/\x1b[31mred\nsecond"), "give /lab/\x1b[31mred to `plimsoll status`"))
	const want = "plimsoll: error: no /lab/\uFFFD[31mred\nsecond\nplimsoll: hint: give /lab/\uFFFD[31mred to `plimsoll status --state-dir /s`\n"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
	b.Reset()
	complain(&b, "kubectl plimsoll", "--node n1", &report.UnknownError{Arg: "web"})
	if !strings.Contains(b.String(), "kubectl plimsoll: hint: `kubectl plimsoll status --node n1` lists") {
		t.Errorf("of the plugin: %q", b.String())
	}
}
