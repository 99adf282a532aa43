//go:build browser

package browser

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/logbook"
	"plimsoll/internal/web"
)

// hostile is the name of a group: the kernel takes it.
const hostile = "<img src=x onerror=alert(1)>"

// gentle uses a little now and then, and stays below its limit.
const gentle = "while :; do i=0; while [ $i -lt 1200 ]; do i=$((i+1)); done; sleep 0.2; done"

// program is the shipped binary with a state directory and a configuration of its own.
type program struct {
	t                     *testing.T
	binary, state, config string
}

func newProgram(t *testing.T) *program {
	t.Helper()
	dir, err := os.MkdirTemp("", "pl") // t.TempDir is too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return &program{t, cgrouptest.Binary(t), filepath.Join(dir, "state"), filepath.Join(dir, "config.yaml")}
}

// policy writes the configuration: groups below a path have it. A policy may have fields behind it.
func (p *program) policy(name, below string) {
	p.t.Helper()
	text := fmt.Sprintf("strategy: {policy: none, sharePoolThresholdPercent: 100}\noverrides:\n  - {cgroup: %q, "+
		"policy: %s}\n", below+"/*", name)
	next := p.config + ".new"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Rename(next, p.config); err != nil {
		p.t.Fatal(err)
	}
}

// daemon is a running program, and what it says.
type daemon struct {
	cmd *exec.Cmd
	log logbook.Book
}

// end asks the program to stop, and waits for it.
func (d *daemon) end() {
	_ = d.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	_ = d.cmd.Wait()
}

// start waits for an address in what the program says.
func (p *program) start(args ...string) (*daemon, string) {
	p.t.Helper()
	d := &daemon{cmd: exec.Command(p.binary, append(args, "--state-dir", p.state, "--cgroup-root", cgrouptest.Root(),
		"--listen", "127.0.0.1:0")...)}
	d.cmd.Stderr = &d.log
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := d.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(d.end)
	listen := regexp.MustCompile(`msg=(?:running|serving) .*listen=\[?(127\.0\.0\.1:\d+)`)
	for begin := time.Now(); time.Since(begin) < 30*time.Second; time.Sleep(50 * time.Millisecond) {
		if m := listen.FindStringSubmatch(d.log.String()); m != nil {
			return d, "http://" + m[1]
		}
	}
	p.t.Fatalf("plimsoll %s does not start:\n%s", strings.Join(args, " "), d.log.String())
	return nil, ""
}

// TestAgent: a real agent, a real throttled group, and what a person sees of both: before a policy, as the file
// changes, after it, in the file that is shared, and without the agent.
func TestAgent(t *testing.T) {
	t.Parallel()
	parent := cgrouptest.New(t)
	groups := map[string]*cgrouptest.Group{}
	for name, script := range map[string]string{"web": "while :; do :; done", "mail": gentle, "cron": "exec sleep 600",
		hostile: "exec sleep 600"} {
		g := parent.Child(name)
		g.Limit(20 * time.Millisecond)
		g.Prevail()
		p := g.Start(script)
		groups[name] = g
		if name == "web" {
			go spurts(t.Context(), g, p)
		}
	}
	web := groups["web"]
	prog := newProgram(t)
	prog.policy("cpuBurstOnly, cpuBurstPercent: 0", parent.Path) // watched, and with no burst
	agent, _ := prog.start("run", "--config", prog.config)
	server, url := prog.start("serve")
	t.Logf("plimsoll serve has the page at %s", url)
	headers(t, url)

	p := open(t, chromium(t), url, size(1280, 900), media("prefers-color-scheme", "light"))
	p.expect("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_EMPTY_RESPONSE", "ERR_CONNECTION_RESET")
	p.loaded()
	lost := `Number(document.querySelector('.inside .line .name[title$="` + web.Path +
		`"]')?.parentElement.querySelector('.lost').textContent.replace(',', '')) > 100`
	t.Logf("the throttled group is in the table, with the time that it lost, after %v",
		p.until(30*time.Second, lost).Round(10*time.Millisecond))
	p.until(5*time.Second, `document.body.innerText.includes('`+hostile+`')`)
	if ask[int](p, `document.querySelectorAll('img').length`) != 0 {
		t.Error("the name of a group became an element")
	}
	p.do(chromedp.Navigate(url + "/#/c/" + strings.ReplaceAll(web.Path, "/", "%2F")))
	p.until(10*time.Second, `document.querySelectorAll('.plots canvas').length === 3`)
	ask[bool](p, `(document.querySelector('.strip .group button').click(), true)`) // 30 s
	p.until(20*time.Second, red(0)+` > 40 && `+red(2)+` > 40`)
	p.until(15*time.Second, `document.querySelector('.where').textContent.includes('policy cpuBurstOnly')`)
	recent, before := reds(2, 0.75, 1), reds(2, 0.5, 0.75)

	if p.folder() != "" {
		time.Sleep(12 * time.Second) // a picture has both halves
	}
	p.until(40*time.Second, recent+` > 60`) // something to look back on
	prog.policy("auto", parent.Path)
	t.Logf("the page shows the new policy after %v",
		p.until(10*time.Second,
			`document.querySelector('.where').textContent.includes('policy auto')`).Round(10*time.Millisecond))
	time.Sleep(recently) // until none of what is recent is older than the policy
	fell := p.until(20*time.Second, recent+` * 4 < `+before)
	t.Logf("the time lost in the last %v fell below a quarter of that in the %v before, after %v", recently, recently,
		(fell + recently).Round(10*time.Millisecond))
	pictures(p, web.Path)

	file := share(t, p, url)
	stopped(t, p, agent, server)
	fromFile(t, prog, file, web.Path)
}

// recently is the right quarter of a strip of 30 s, and recent what was lost in it;
// before is of the quarter before that one.
const recently = 7500 * time.Millisecond

// red counts the pixels of a plot that have the colour of a throttle.
func red(plot int) string { return reds(plot, 0, 1) }

// reds counts them in a part of the plot.
func reds(plot int, from, to float64) string {
	return fmt.Sprintf(`(() => {
		const canvas = document.querySelectorAll('.plots canvas')[%d], copy = new OffscreenCanvas(canvas.width, canvas.height), c = copy.getContext('2d', { willReadFrequently: true }), hex = getComputedStyle(document.documentElement).getPropertyValue('--bad').trim();
		const [r, g, b] = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)), left = 70, wide = canvas.width - left;
		c.drawImage(canvas, 0, 0);
		const { data } = c.getImageData(left + Math.floor(wide * %g), 0, Math.floor(wide * (%g - %g)), canvas.height);
		let n = 0;
		for (let i = 0; i < data.length; i += 4) if (Math.abs(data[i] - r) + Math.abs(data[i + 1] - g) + Math.abs(data[i + 2] - b) < 60 && data[i + 3] > 100) n++;
		return n;
	})()`, plot, from, to, from)
}

// spurts has a process use 30 ms of CPU time three times a second: less than its limit on average, and more in a
// moment. A burst as large as the limit is enough for it.
func spurts(ctx context.Context, g *cgrouptest.Group, p *cgrouptest.Process) {
	used := func() time.Duration {
		u, _ := g.Tree().Usage(g.Path) // the group ends with the test
		return u
	}
	for ctx.Err() == nil {
		before := used()
		_ = syscall.Kill(p.PID(), syscall.SIGCONT) // it may have ended, too
		for end := time.Now().Add(time.Second); used() < before+30*time.Millisecond && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		_ = syscall.Kill(p.PID(), syscall.SIGSTOP)
		time.Sleep(320 * time.Millisecond)
	}
}

// headers: the page comes with the policy that the tests against the fake use, and only to those who take HTML.
func headers(t *testing.T, url string) {
	t.Helper()
	for accept, want := range map[string]string{"text/html": web.PagePolicy,
		"*/*": "default-src 'none'; frame-ancestors 'none'"} {
		r, err := http.NewRequest(http.MethodGet, url+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", accept)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if got := answer.Header.Get("Content-Security-Policy"); got != want {
			t.Errorf("Accept: %s: the policy is %q, want %q", accept, got, want)
		}
	}
}

// pictures are those of the documentation.
func pictures(p *tab, group string) {
	p.t.Helper()
	if p.folder() == "" {
		return
	}
	for _, look := range []struct {
		name      string
		container bool
	}{{"container", true}, {"light", false}} {
		ask[bool](p, fmt.Sprintf(`(location.hash = %v ? '#/c/' + encodeURIComponent('%s') : '#/', true)`,
			look.container, group))
		if look.container {
			p.until(10*time.Second,
				`document.querySelectorAll('.plots canvas').length === 3 && !document.querySelector('.three').hidden`)
		} else {
			p.until(10*time.Second,
				`!document.querySelector('.container') && document.querySelector('.inside .line:not([hidden])')`)
		}
		ask[bool](p, `(document.activeElement.blur(), true)`)
		p.picture(look.name, true)
	}
}

// share takes the file that the page offers.
func share(t *testing.T, p *tab, url string) string {
	t.Helper()
	answer, err := http.Get(url + ask[string](p, `document.getElementById('share').getAttribute('href')`))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK ||
		!strings.HasPrefix(answer.Header.Get("Content-Disposition"), "attachment;") {
		t.Fatalf("the file: %s, %v, %v", answer.Status, answer.Header, err)
	}
	file := filepath.Join(t.TempDir(), "node.json.gz")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Logf("the shared file has %d bytes", len(data))
	return file
}

// stopped: the page says within 3 s that the agent, and then that the server is gone.
func stopped(t *testing.T, p *tab, agent, server *daemon) {
	t.Helper()
	begin := time.Now()
	agent.end()
	p.until(lossShown, `document.getElementById('live').dataset.state === 'agent'`)
	t.Logf("the page shows the loss of the agent %v after its end began", time.Since(begin).Round(10*time.Millisecond))
	server.end()
	took := p.until(lossShown, `document.getElementById('live').dataset.state === 'lost'`)
	t.Logf("and that of the server after %v", took.Round(10*time.Millisecond))
	p.close()
}

// fromFile: the file opens without an agent, and shows the same strip.
func fromFile(t *testing.T, prog *program, file, group string) {
	t.Helper()
	elsewhere := &program{t: t, binary: prog.binary, state: filepath.Join(t.TempDir(), "none")}
	_, url := elsewhere.start("serve", "--from", file)
	p := open(t, chromium(t), url, size(1280, 900), media("prefers-color-scheme", "light"))
	p.until(10*time.Second, `document.getElementById('banner').innerText.startsWith('A recording of ')`)
	p.loaded()
	p.do(chromedp.Navigate(url + "/#/c/" + strings.ReplaceAll(group, "/", "%2F")))
	p.until(10*time.Second, `document.querySelectorAll('.plots canvas').length === 3`)
	p.until(10*time.Second, red(0)+` > 20`)
}
