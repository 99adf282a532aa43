package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/experiment"
	"plimsoll/lab/frame"
)

const (
	filmSeconds  = 5
	filmSize     = "640x360"
	smallFilm    = "160x90"
	framesBefore = 30              // that are done before it is measured: x264 looks ahead first
	reelPatience = 2 * time.Minute // behind all else, the first frames may take long
)

// ffmpeg transcodes a film over and over.
type ffmpeg struct {
	binary string
	size   string // of the film
	dir    string
	child  *experiment.Child
}

// frames is how many were done at a time.
type frames struct {
	at time.Time
	n  int64
}

// perSecond is the rate between two.
func (a frames) perSecond(b frames) float64 {
	if span := b.at.Sub(a.at).Seconds(); span > 0 {
		return float64(b.n-a.n) / span
	}
	return 0
}

// prepare makes the film: the same in every run.
func (f *ffmpeg) prepare(ctx context.Context) {
	f.dir = frame.Must(experiment.TempDir("ffmpeg"))
	source := fmt.Sprintf("testsrc2=size=%s:rate=30:duration=%d", f.size, filmSeconds)
	out, err := exec.CommandContext(ctx, f.binary, "-nostdin", "-v", "error", "-f", "lavfi", "-i", source,
		"-c:v", "libx264", "-preset", "ultrafast", f.film()).CombinedOutput()
	if err != nil {
		frame.Check(fmt.Errorf("make a film with ffmpeg: %w\n%s", err, out))
	}
}

func (f *ffmpeg) film() string { return filepath.Join(f.dir, "film.mp4") }

func (f *ffmpeg) progress() string { return filepath.Join(f.dir, "progress") }

// start begins to transcode, always at the film's beginning, and waits until frames come.
func (f *ffmpeg) start(ctx context.Context, enter func(pid int) error) {
	cmd := experiment.Gated(f.binary, "-nostdin", "-v", "error", "-stream_loop", "-1", "-i", f.film(), "-c:v",
		"libx264", "-preset", "medium", "-threads", strconv.Itoa(2*runtime.NumCPU()), "-f", "null",
		"-progress", f.progress(), "-stats_period", "0.1", "-")
	frame.Check(os.WriteFile(f.progress(), nil, 0o644)) // what the last one told is gone
	f.child = frame.Must(experiment.Launch(cmd, enter))
	frame.Check(f.child.Await(ctx, reelPatience, func() error {
		if n := f.frames().n; n < framesBefore {
			return fmt.Errorf("ffmpeg has done %d of its first %d frames", n, framesBefore)
		}
		return nil
	}))
}

// frames is what ffmpeg told last (-progress), and when.
func (f *ffmpeg) frames() frames {
	info, err := os.Stat(f.progress())
	if err != nil {
		return frames{} // none has been started yet
	}
	return frames{info.ModTime(), lastFrames(string(frame.Must(os.ReadFile(f.progress()))))}
}

// lastFrames is how many frames the last progress report tells; 0 without one.
func lastFrames(reports string) (n int64) {
	if i := strings.LastIndex(reports, "frame="); i >= 0 {
		_, _ = fmt.Sscanf(reports[i:], "frame=%d", &n) // a report that is not whole yet tells none
	}
	return n
}

// stop ends the transcoding; what it did is of no use to anybody.
func (f *ffmpeg) stop() error {
	defer func() { f.child = nil }()
	return errors.Join(f.child.Ended(), f.child.Kill())
}

func (f *ffmpeg) remove() error { return errors.Join(f.stop(), os.RemoveAll(f.dir)) }
