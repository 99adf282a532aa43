package loadline

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// The interval of a short recording is as wide as the spread between recordings of its length (facts, 60 recordings
// each: relative standard deviation 45 % at 1000 periods, 13 % at 10,000).
func TestSpread(t *testing.T) {
	for _, c := range []struct {
		periods           int
		narrowest, widest float64 // of the interval in standard deviations of that size
	}{{1000, 0.45, 0.45}, {10000, 0.13, 0.13}} {
		n := same(t, 20, 1, record(t, exp(t, 0.7/20), c.periods, 8))
		low, high, err := Spread(n, Offsets, 200, 1)
		if err != nil {
			t.Fatal(err)
		}
		width := (high - low) / 4
		if width < c.narrowest/1.6 || width > c.widest*1.6 {
			t.Errorf("%d periods: %.2f to %.2f", c.periods, low, high)
		}
	}
	if low, high, err := Spread(same(t, 20, 1, exp(t, 0.035)), Offsets, 100, 1); low != 1 || high != 1 || err != nil {
		t.Errorf("a law is not short: %v, %v, %v", low, high, err)
	}
}

// A recording without a coincidence does not exclude what it is too short to show: 3/n, and more where its periods
// depend on each other.
func TestNothingSeenIsNotNothing(t *testing.T) {
	var alone, waves []float64
	chance := stream(7)
	for i := range 1000 {
		alone = append(alone, 0.1+float64(chance.below(1000))/10_000)
		waves = append(waves, 0.15+0.05*math.Sin(float64(i)/50))
	}
	for name, c := range map[string]struct {
		samples   []float64
		clock     int
		low, high float64
	}{
		"on one clock": {alone, 1, 0.003, 0.0031}, "on none": {alone, 0, 0.003, 0.0031},
		"with memory": {waves, 1, 0.05, 1},
	} {
		n := Node{Capacity: 1}
		for range 4 {
			n.Containers = append(n.Containers, Container{Quota: 0.25, Burst: 0.25, Clock: c.clock,
				Demand: must[*Recording](t)(NewRecording(c.samples))})
		}
		r := simulate(t, n, Options{})
		if r.Miss.Value > 1e-12 || r.Miss.High < c.low || r.Miss.High > c.high || r.WCET.High < 1+c.low {
			t.Errorf("%s: %+v, %+v", name, r.Miss, r.WCET)
		}
		if e := simulate(t, n, Options{Resamples: -1}).Miss; e.High > 1e-5 {
			t.Errorf("%s, of the simulation alone: %+v", name, e)
		}
	}
}

// A larger burst, with which bursts coincide hardly ever, does not narrow the interval of one with which they never do.
func TestUnseenWithMoreBurst(t *testing.T) {
	samples := slices.Repeat([]float64{0.1}, 1000)
	samples[500], samples[501] = 0.26, 0.29
	r := must[*Recording](t)(NewRecording(samples))
	last := 0.0
	for _, burst := range []float64{0.03, 0.05} {
		n := Node{Capacity: 1.1, Containers: slices.Repeat([]Container{{Quota: 0.25, Burst: burst, Demand: r}}, 4)}
		got := simulate(t, n, Options{})
		if none := burst == 0.03; got.Coincidence > 1e-6 || (got.Coincidence < rounding) != none {
			t.Fatalf("burst %v: J %v: it proves nothing", burst, got.Coincidence)
		}
		if got.Miss.High < last || got.Miss.High < 0.003 || got.WCET.High < 1.003 {
			t.Errorf("burst %v: %+v, %+v; below it up to %v", burst, got.Miss, got.WCET, last)
		}
		last = got.Miss.High
	}
}

// Of 30 recordings of 2000 periods, most intervals hold the truth; without the bootstrap hardly any would.
func TestIntervalsHoldTheTruth(t *testing.T) {
	truth := simulate(t, same(t, 10, 1, exp(t, 0.06)), Options{}).Miss.Value
	with, without := 0, 0
	for seed := range uint64(30) {
		n := same(t, 10, 1, record(t, exp(t, 0.06), 2000, 100+seed))
		for _, resamples := range []int{60, -1} {
			e := simulate(t, n, Options{Periods: 64000, Resamples: resamples}).Miss
			if e.Low > truth || e.High < truth {
				continue
			}
			if resamples > 0 {
				with++
			} else {
				without++
			}
		}
	}
	if with < 25 || without > 15 {
		t.Errorf("%d of 30 intervals hold the truth, %d without the bootstrap", with, without)
	}
}

// A resampled recording has the memory of the recording.
func TestResampleKeepsMemory(t *testing.T) {
	var waves []float64
	for i := range 3000 {
		waves = append(waves, 1+math.Sin(float64(i)/50))
	}
	r, chance := must[*Recording](t)(NewRecording(waves)), stream(1)
	drawn := bare(r.resample(r.block(), &chance))
	list := drawn.covariances(11)
	if c := list[10] / list[0]; c < 0.8 || drawn.Len() != r.Len() {
		t.Errorf("correlation %.2f at ten periods, %d samples", c, drawn.Len())
	}
}

// The covariances are those of the sums, and two days of a load that follows the day are done at once: a pass of 1.7
// million periods for each of as many lags would take minutes.
func TestMemory(t *testing.T) {
	r := record(t, exp(t, 0.5), 1000, 4)
	list := r.covariances(100)
	for lag, got := range list {
		want := 0.0
		for i := lag; i < r.Len(); i++ {
			want += (r.samples[i] - r.mean) * (r.samples[i-lag] - r.mean)
		}
		want /= float64(r.Len()) * r.variance
		near(t, fmt.Sprint("correlation at ", lag), got/list[0], want, 1e-9*math.Abs(want)+1e-12)
	}
	const day = 24 * 60 * 60 * 10
	days := make([]float64, 2*day)
	for i := range days {
		days[i] = 1 + math.Sin(2*math.Pi*float64(i)/day)
	}
	if n := bare(days).memory(); n != day/5 { // a pass for each lag would take hours
		t.Errorf("a memory of %d periods", n)
	}
	long := 0 // of recordings without a memory, each fortieth or so seems to have one
	for seed := range uint64(40) {
		if record(t, exp(t, 0.5), 1000, seed).memory() > 1 {
			long++
		}
	}
	if long > 5 {
		t.Errorf("%d of 40 recordings of independent periods have a memory", long)
	}
	if n := bare([]float64{1, 1}).memory(); n != 1 {
		t.Errorf("steady demand: %d", n)
	}
}
