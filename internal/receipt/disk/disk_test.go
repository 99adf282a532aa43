package disk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"plimsoll/internal/policy"
	"plimsoll/internal/receipt"
	"plimsoll/internal/strategy"
)

// fakeAgent has what it was given.
type fakeAgent struct {
	kept    policy.KeptReceipts
	refuses error
	resumed int
	asked   atomic.Int64
	hangs   chan struct{} // nil: it does not
}

func (a *fakeAgent) KeptReceipts() policy.KeptReceipts {
	a.asked.Add(1)
	if a.hangs != nil {
		<-a.hangs
	}
	return a.kept
}

func (a *fakeAgent) ResumeReceipts(k policy.KeptReceipts) error {
	if a.resumed++; a.refuses == nil {
		a.kept = k
	}
	return a.refuses
}

// some is what an agent with one experiment keeps.
func some(spells int64) policy.KeptReceipts {
	var f receipt.KeptFigures
	f.Since = time.Date(2026, 11, 27, 1, 2, 3, 4, time.UTC)
	f.Saved = receipt.KeptEstimate{Treated: receipt.KeptArm{Spells: spells, Sum: 0.1 + 0.2}, Mean: -1e-300, Part: 0.3}
	s := strategy.Default()
	s.Receipts, s.LoadLinePercent = 0.1, 99.9
	return policy.KeptReceipts{Node: f, Groups: []policy.KeptReceipt{{Cgroup: "/lab/a", Inode: 1<<63 + 1,
		Sampled: policy.Sampled{Strategy: s, Extra: strategy.ExtraCores{PerPod: strategy.Bound{Set: true, CPUs: 1.5}}},
		Kept:    receipt.Kept{KeptFigures: f, Next: 1<<63 + 3, Withdrawn: receipt.HarmsSelf}}}}
}

// opened is the file in a directory, and the log.
func opened(dir string, a *fakeAgent) (*File, *bytes.Buffer) {
	var log bytes.Buffer
	return Open(dir, "this-boot", a, slog.New(slog.NewTextHandler(&log, nil))), &log
}

// TestFileIsKept: the next agent has what the one before had. Nothing is written where there is nothing to keep, nor
// where nothing has changed.
func TestFileIsKept(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	a := &fakeAgent{}
	f, log := opened(dir, a)
	if f.save(); a.resumed != 0 || log.Len() > 0 {
		t.Errorf("without a file: resumed %d times, log %q", a.resumed, log)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("written, with nothing to keep")
	}
	var last os.FileInfo
	for i, c := range []struct {
		spells  int64
		written bool
	}{{1, true}, {1, false}, {2, true}} {
		a.kept = some(c.spells)
		f.save()
		now, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if last != nil && os.SameFile(last, now) == c.written {
			t.Errorf("%d: written: %v, want %v", i, !c.written, c.written)
		}
		last = now
	}
	if last.Mode().Perm() != 0o600 || f.Problem() != "" {
		t.Errorf("mode %v, problem %q", last.Mode(), f.Problem())
	}
	next := &fakeAgent{}
	if _, log := opened(dir, next); !reflect.DeepEqual(next.kept, some(2)) || log.Len() > 0 {
		t.Errorf("%+v, want %+v; log %q", next.kept, some(2), log)
	}
}

// TestUnusableFile: the agent goes on without, says once why, and writes its own later.
func TestUnusableFile(t *testing.T) {
	whole := `{"version":1,"boot":"this-boot","node":{},"groups":[]}`
	for _, c := range []struct {
		name, text, want string
		refuses          error
	}{
		{"empty", "", "unexpected end", nil},
		{"cut short", whole[:30], "unexpected end", nil},
		{"no object", "null", "version 0", nil},
		{"another version", strings.Replace(whole, "1", "2", 1), "version 2 of the format; this agent reads version 1",
			nil},
		{"another version with other fields", `{"version":2,"boot":"this-boot","groups":{}}`, "version 2", nil},
		{"another boot", strings.Replace(whole, "this-boot", "that-boot", 1), "of another boot", nil},
		{"a number that is none", strings.Replace(whole, `{}`, `{"aborted":"x"}`, 1), "aborted", nil},
		{"too large", strings.Repeat(" ", mostBytes) + whole, "16 MiB", nil},
		{"refused", whole, "no experiment has this", errors.New("no experiment has this")},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, FileName)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		a := &fakeAgent{refuses: c.refuses}
		f, log := opened(dir, a)
		line := log.String()
		if strings.Count(line, "\n") != 1 || !strings.Contains(line, c.want) || !strings.Contains(line, path) ||
			!strings.Contains(line, "hint=") {
			t.Errorf("%s: log %q, want one line with %q", c.name, line, c.want)
		}
		if !a.kept.Empty() || (a.resumed > 0) != (c.refuses != nil) {
			t.Errorf("%s: taken over: %+v", c.name, a.kept)
		}
		a.kept = some(1)
		f.save()
		next := &fakeAgent{}
		if _, log := opened(dir, next); log.Len() > 0 || next.kept.Empty() {
			t.Errorf("%s: after it was written anew: %q", c.name, log)
		}
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, FileName), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, log := opened(dir, &fakeAgent{}); strings.Count(log.String(), "\n") != 1 ||
		!strings.Contains(log.String(), "is a directory") {
		t.Errorf("a file that cannot be read: %q", log)
	}
}

// TestFailingDisk: a disk that takes no file is told of once, is a problem until it takes one,
// and leaves the file as it was.
func TestFailingDisk(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	a := &fakeAgent{kept: some(1)}
	f, log := opened(dir, a)
	f.save()
	if err := os.Mkdir(path+".new", 0o700); err != nil { // no file can be made
		t.Fatal(err)
	}
	for i := range int64(3) {
		a.kept = some(2 + i)
		f.save()
	}
	if strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), "level=WARN") ||
		!strings.Contains(f.Problem(), "is a directory") {
		t.Errorf("log %q, problem %q", log, f.Problem())
	}
	next := &fakeAgent{}
	if opened(dir, next); !reflect.DeepEqual(next.kept, some(1)) {
		t.Errorf("the old file holds %+v", next.kept)
	}
	if err := os.RemoveAll(path + ".new"); err != nil {
		t.Fatal(err)
	}
	f.save()
	f.save()
	if strings.Count(log.String(), "\n") != 2 || f.Problem() != "" {
		t.Errorf("log %q, problem %q", log, f.Problem())
	}
	if opened(dir, next); !reflect.DeepEqual(next.kept, some(4)) {
		t.Errorf("the file holds %+v", next.kept)
	}
}

// TestRun: the file is written a minute after the start at the earliest, once a minute at most, and at the end.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fakeAgent{}
		dir := t.TempDir()
		f, _ := opened(dir, a)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- f.Run(ctx) }()
		time.Sleep(every - time.Millisecond)
		synctest.Wait()
		if n := a.asked.Load(); n != 0 {
			t.Errorf("asked %d times in the first minute", n)
		}
		time.Sleep(10 * every)
		synctest.Wait()
		if n := a.asked.Load(); n != 10 {
			t.Errorf("asked %d times in ten minutes", n)
		}
		a.kept = some(5)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		next := &fakeAgent{}
		if opened(dir, next); !reflect.DeepEqual(next.kept, some(5)) {
			t.Errorf("at the end %+v was kept", next.kept)
		}
	})
}

// TestDiskThatHangs: the end of the agent does not wait for it for ever.
func TestDiskThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fakeAgent{hangs: make(chan struct{})}
		f, _ := opened(t.TempDir(), a)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		begin := time.Now()
		if err := f.Run(ctx); err != nil || time.Since(begin) != last {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		close(a.hangs)
	})
}

// TestSizeOfTheFile holds the bound on what is read against what a large node writes.
func TestSizeOfTheFile(t *testing.T) {
	dir := t.TempDir()
	k := some(1_000_000)
	one := k.Groups[0]
	one.Saved = receipt.KeptEstimate{Treated: receipt.KeptArm{Spells: 123_456_789, Sum: 0.1234567890123456},
		Mean: 1.234567890123456e-12, Squares: 0.1234567890123456, Null: 0.1234567890123456, Part: 0.1234567890123456}
	one.Taken, one.Requests = one.Saved, one.Saved
	k.Groups = nil
	for i := range 5000 {
		one.Cgroup = fmt.Sprintf(
			"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod%036d.slice/cri-containerd-%064d.scope", i,
			i)
		k.Groups = append(k.Groups, one)
	}
	f, _ := opened(dir, &fakeAgent{kept: k})
	f.save()
	s, err := os.Stat(filepath.Join(dir, FileName))
	if err != nil || s.Size() > mostBytes {
		t.Fatalf("%d bytes: %v", s.Size(), err)
	}
	t.Logf("%d bytes for each of %d groups", s.Size()/5000, 5000)
}
