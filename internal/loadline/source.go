package loadline

// source is a container's demand, and tap one replica's stream of it.
type source interface {
	open(replica int) tap
	// admitted says that the stream is not of demand, but of what the container admits.
	admitted() bool
}

type tap interface{ fill(x []int64) }

// sources gives each container its source. A container's stream depends on the seed, the replica and its place, not on
// quotas or bursts: two nodes that differ in those get the same demands, and the difference of their results has little
// noise (common random numbers).
func sources(n Node, o Options, s scale) []source {
	list := make([]source, len(n.Containers))
	samplers := map[Law]sampler{}
	draw := func(l Law) sampler {
		if samplers[l] == nil {
			samplers[l] = newSampler(l, s)
		}
		return samplers[l]
	}
	var shared copula
	if o.Rho > 0 {
		shared = newCopula(o.Rho)
	}
	for i, c := range n.Containers {
		r, recorded := c.Demand.(*Recording)
		switch {
		case o.Rho > 0:
			list[i] = correlated{draw(c.Demand), &shared, o.Seed, i}
		case recorded && (o.Replay != IID || c.Clock != 0):
			list[i] = newTape(c, r, i, o, s)
		default:
			list[i] = independent{draw(c.Demand), o.Seed, i}
		}
	}
	return list
}

// The purposes of the streams of chance.
const (
	drawn = iota
	clockless
	clocked
	common
	resampled
)

// independent draws every period by itself.
type independent struct {
	sampler
	seed  uint64
	place int
}

func (s independent) admitted() bool { return false }

func (s independent) open(replica int) tap {
	return &drawing{s.sampler, stream(s.seed, drawn, replica, s.place)}
}

type drawing struct {
	sampler
	random random
}

func (d *drawing) fill(x []int64) { d.sampler.fill(x, &d.random) }

// tape replays a recording in stretches that begin at random. A whole turn of a recording is the same whenever it
// begins: what the container admits in it is computed once.
type tape struct {
	samples []int64
	done    bool // the samples are admissions
	stretch int
	seed    uint64
	numbers []int
}

func newTape(c Container, r *Recording, place int, o Options, s scale) tape {
	t := tape{stretch: len(r.samples), seed: o.Seed, numbers: []int{clockless, place}}
	switch {
	case o.Replay == Blocks:
		t.stretch = r.block()
	case o.Replay == IID:
		t.stretch = 1
	case !o.full():
		t.done = true
	}
	if t.samples = s.list(r.samples); t.done {
		t.samples = s.list(admittedIn(r, c.Quota, c.Burst))
	}
	if c.Clock != 0 {
		t.numbers = []int{clocked, c.Clock}
	}
	return t
}

func (t tape) admitted() bool { return t.done }

func (t tape) open(replica int) tap {
	return &head{tape: t, random: stream(t.seed, append([]int{replica}, t.numbers...)...)}
}

type head struct {
	tape
	random   random
	at, left int
}

func (h *head) fill(x []int64) {
	for len(x) > 0 {
		if h.left == 0 {
			h.at, h.left = h.random.below(len(h.samples)), h.stretch
		}
		n := copy(x[:min(len(x), h.left)], h.samples[h.at:])
		x = x[n:]
		h.left -= n
		if h.at += n; h.at == len(h.samples) {
			h.at = 0
		}
	}
}
