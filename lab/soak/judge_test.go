package main

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// short has the samples of a soak at the high rate: 11 agents that are killed after 10 s, and one that lives for as
// many seconds as longer says. Eight groups are started in a second, and the API server is away for 15 s of each 40.
func short(longer int, change func(s *sample, rng *rand.Rand)) (samples []sample, last int) {
	const lives = 11
	rng := rand.New(rand.NewPCG(3, 3))
	at := 0
	for life := range lives + 1 {
		seconds := 10
		if life == lives {
			seconds = longer
		}
		for age := range seconds {
			at++
			s := sample{At: time.Duration(at) * time.Second, Life: life, Steady: at%40 < 25,
				Age: time.Duration(age) * time.Second, Started: int64(375 + 8*at + rng.IntN(4)),
				// Memory grows as an agent warms up, and is collected; descriptors come and go.
				RSS:     int64(30<<20 + min(age, 6)<<19 + rng.IntN(1<<20)),
				Files:   int64(75 + rng.IntN(20)),
				Threads: 10, Goroutines: int64(24 + 15*rng.IntN(2)), Watches: int64(420 + rng.IntN(12)),
				Entries: int64(880 + rng.IntN(20)),
				Journal: int64((at*40%600)+150) << 10}
			if !s.Steady { // new pods are not known
				s.Files, s.Entries, s.Watches = s.Files+int64(8*(at%40-25)), s.Entries-int64(
					8*(at%40-25)), s.Watches+int64(2*(at%40-25))
			}
			change(&s, rng)
			samples = append(samples, s)
		}
	}
	return samples, lives
}

// judgeShort judges such samples, changed; the last life has so many seconds.
func judgeShort(longer int, change func(s *sample, rng *rand.Rand)) []judged {
	samples, last := short(longer, change)
	return judge(samples, 375, last)
}

func verdicts(list []judged) map[string]verdict {
	of := map[string]verdict{}
	for _, j := range list {
		of[j.Quantity+" "+j.Where] = j.Verdict
	}
	return of
}

func TestJudgeNoLeak(t *testing.T) {
	for name, v := range verdicts(judgeShort(310, func(*sample, *rand.Rand) {})) {
		if v != flat {
			t.Errorf("%s: %s", name, v)
		}
	}
}

// TestJudgeLeaks: a leak of one for each group that is started, in the agent or in what outlives it, is found, and
// nothing else is.
func TestJudgeLeaks(t *testing.T) {
	born := map[int]int64{}
	since := func(s *sample) int64 { // groups started in this life
		if _, ok := born[s.Life]; !ok {
			born[s.Life] = s.Started
		}
		return s.Started - born[s.Life]
	}
	for name, leak := range map[string]func(s *sample, rng *rand.Rand){
		"descriptors within a life":     func(s *sample, _ *rand.Rand) { s.Files += since(s) },
		"goroutines within a life":      func(s *sample, _ *rand.Rand) { s.Goroutines += since(s) },
		"threads within a life":         func(s *sample, _ *rand.Rand) { s.Threads += since(s) / 2 },
		"inotify watches within a life": func(s *sample, _ *rand.Rand) { s.Watches += since(s) },
		"map entries within a life":     func(s *sample, _ *rand.Rand) { s.Entries += since(s) },
		"memory within a life":          func(s *sample, _ *rand.Rand) { s.RSS += 16 << 10 * since(s) },
		"journal across lives":          func(s *sample, _ *rand.Rand) { s.Journal = 1500 * s.Started },
		"map entries across lives":      func(s *sample, _ *rand.Rand) { s.Entries += 50 * int64(s.Life) },
		"descriptors across lives":      func(s *sample, _ *rand.Rand) { s.Files += 50 * int64(s.Life) },
	} {
		clear(born)
		for which, v := range verdicts(judgeShort(310, leak)) {
			want := flat
			if which == name {
				want = grows
			}
			if v != want {
				t.Errorf("leak of %s: %s is %s", name, which, v)
			}
		}
	}
}

// TestJudgeFillsUp: what has a bound may fill up while it is judged; in a longer soak the same growth for each
// group is a leak.
func TestJudgeFillsUp(t *testing.T) {
	q := quantities(375)[0].within
	g := growth{Slope: 0.1, Low: 0.09, High: 0.11, Known: true, Points: 12}
	for span, want := range map[float64]verdict{300: flat, 1000: grows} {
		if g.Span = span; q.judge(g) != want {
			t.Errorf("%v groups: %s, want %s", span, q.judge(g), want)
		}
	}
}

// TestJudgeUnclear: a soak that is too short, or too noisy for a leak to show, shows nothing.
func TestJudgeUnclear(t *testing.T) {
	samples, last := short(60, func(s *sample, rng *rand.Rand) { s.Files += int64(rng.IntN(100000)) })
	if v := verdicts(judge(samples, 375, last)); v["descriptors within a life"] != unclear ||
		v["descriptors across lives"] != unclear || v["goroutines within a life"] != flat {
		t.Errorf("noise: %v", v)
	}
	for name, v := range verdicts(judge(samples[:12], 375, 1)) {
		want := unclear
		if name == "memory within a life" {
			want = young
		}
		if v != want {
			t.Errorf("12 seconds: %s is %s, want %s", name, v, want)
		}
	}
}

// TestJudgeYoung: the growth of memory in a life of a minute is not judged, in one of five minutes it is.
func TestJudgeYoung(t *testing.T) {
	leak := func(s *sample, _ *rand.Rand) { s.RSS += 64 << 10 * s.Started }
	for seconds, want := range map[int]verdict{60: young, 310: grows} {
		for _, j := range judgeShort(seconds, leak) {
			if j.Quantity == "memory" && j.Where == withinLife &&
				(j.Verdict != want || j.met(false) != (want == young)) {
				t.Errorf("%d s: %s, met %t; want %s", seconds, j.Verdict, j.met(false), want)
			}
		}
	}
}

func TestAged(t *testing.T) {
	var samples []sample
	for i := range 20 {
		samples = append(samples, sample{Life: i / 10, Age: time.Duration(i%10) * time.Second, Steady: i != 15,
			Files: int64(i)})
	}
	for part, want := range map[float64]string{0: "[10 11 12 13 14 16 17 18 19]", 1.0 / 3: "[13 14 16 17 18 19]",
		2.0 / 3: "[16 17 18 19]"} {
		var got []int64
		for _, s := range aged(samples, 1, part) {
			got = append(got, s.Files)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("from %.2f on: %v, want %s", part, got, want)
		}
	}
}
