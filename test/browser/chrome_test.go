//go:build browser

package browser

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

var figures = flag.String("figures", "", "write the pictures of the documentation into this folder")

// tab is one tab of the browser. What the page complains of fails the test.
type tab struct {
	context.Context
	t        *testing.T
	mu       sync.Mutex
	close    func()
	complain []string
	expected []string // complaints that have one of these are none
}

// chromium starts a browser that asks nobody but the test's server.
func chromium(t *testing.T) context.Context {
	t.Helper()
	binary, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("no chromium; hint: bash test/tiers.sh browser installs it")
	}
	options := append([]chromedp.ExecAllocatorOption{}, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.ExecPath(binary), chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1280, 900),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("hide-scrollbars", false), chromedp.Flag("force-color-profile", "srgb"),
		chromedp.Flag("js-flags", "--expose-gc"))
	allocated, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(allocated)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start chromium: %v", err)
	}
	return ctx
}

// open makes a tab of the browser and has it load an address.
func open(t *testing.T, browser context.Context, url string, before ...chromedp.Action[chromedp.Void]) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	p := &tab{Context: ctx, t: t}
	said, done := chromedp.Console(ctx), make(chan struct{})
	go func() {
		defer close(done)
		for m, err := range said {
			if err != nil {
				return
			}
			p.hear(m)
		}
	}()
	p.close = sync.OnceFunc(func() {
		cancel()
		<-done
		p.silent()
	})
	t.Cleanup(p.close)
	p.do(before...)
	p.do(chromedp.Navigate(url))
	return p
}

// hear keeps what the page, or the browser for it, complains of: errors, exceptions, refusals of the policy.
func (p *tab) hear(m chromedp.ConsoleMessage) {
	if slices.Contains([]chromedp.ConsoleType{chromedp.ConsoleLog, chromedp.ConsoleDebug, chromedp.ConsoleInfo},
		m.Type) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, known := range p.expected {
		if strings.Contains(m.Text, known) {
			return
		}
	}
	p.complain = append(p.complain, fmt.Sprintf("%s (%s:%d)", m.Text, m.URL, m.Line))
}

// expect says which complaints of the console are the test's own doing.
func (p *tab) expect(text ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected = append(p.expected, text...)
}

// silent fails the test where the page has complained.
func (p *tab) silent() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, text := range p.complain {
		p.t.Errorf("the console says: %s", text)
	}
	p.complain = nil
}

func (p *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.Context, 30*time.Second)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.t.Fatal(err)
	}
}

// ask evaluates an expression.
func ask[T any](p *tab, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.Context, 30*time.Second)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// until waits for a condition, and says how long it took.
func (p *tab) until(within time.Duration, expression string) time.Duration {
	p.t.Helper()
	begin := time.Now()
	for !ask[bool](p, "Boolean("+expression+")") {
		if time.Since(begin) > within {
			p.t.Fatalf("not within %v: %s\nthe page says: %.2000s", within, expression,
				ask[string](p, "document.body.innerText"))
		}
		time.Sleep(20 * time.Millisecond)
	}
	return time.Since(begin)
}

// loaded waits for the table's first line, and for what is said of the node, which the page shows a frame later.
func (p *tab) loaded() {
	p.t.Helper()
	p.until(20*time.Second, `document.querySelector('.inside .line:not([hidden]) .name b')?.textContent`)
	p.until(20*time.Second, `document.querySelector('.ship .facts dt')`)
}

// size is that of the page's window.
func size(width, height int64) chromedp.Action[chromedp.Void] {
	if width < 500 {
		return chromedp.EmulateViewport(width, height, chromedp.EmulateMobile)
	}
	return chromedp.EmulateViewport(width, height)
}

// media sets features of the device, such as the colour scheme.
func media(name, value string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia,
			emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: name, Value: value}}})
		return err
	})
}

// press is a key as a keyboard sends it: what the page prevents is not typed.
// (chromedp.KeyEvent types it all the same.)
func press(key string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		for _, event := range []input.DispatchKeyEventParams{{Type: input.DispatchKeyEventTypeKeyDown, Key: key,
			Text: key}, {Type: input.DispatchKeyEventTypeKeyUp, Key: key}} {
			if _, err := chromedp.Call(ctx, input.DispatchKeyEvent, event); err != nil {
				return err
			}
		}
		return nil
	})
}

// folder is where a person asked for pictures; "": nobody did.
func (p *tab) folder() string {
	if *figures != "" {
		return *figures
	}
	return os.Getenv("PLIMSOLL_PICTURES") // all of them; the documentation has those of TestAgent
}

// picture takes one of what is in sight, or of the whole page.
func (p *tab) picture(name string, whole bool) {
	p.t.Helper()
	folder := p.folder()
	if folder == "" {
		return
	}
	shot := chromedp.CaptureScreenshot()
	if whole {
		shot = chromedp.FullScreenshot(100)
	}
	if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("page-%s.png", name)), p.still(shot), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// stillWithin is how long a page may take until it stands still between two seconds' figures, on a busy machine.
const stillWithin = 20 * time.Second

// still takes a picture of a page that stands still: two in a row are equal. The page draws each chart in a frame of
// its own, when new figures come and when the browser makes room for the whole page.
func (p *tab) still(shot chromedp.Action[[]byte]) (data []byte) {
	p.t.Helper()
	for begin := time.Now(); time.Since(begin) < stillWithin; {
		_ = `import(`
		// what waits is drawn
		ask[bool](p, `import('/assets/frames.js').then((m) => new Promise((done) => m.frame(() => done(true))))`)
		last := data
		var err error
		if data, err = chromedp.Run(p.Context, shot); err != nil {
			p.t.Fatal(err)
		}
		if bytes.Equal(data, last) {
			return data
		}
	}
	p.t.Fatalf("the page does not stand still within %v", stillWithin)
	return nil
}
