package loadline

// contention is the published model, which shares the node's CPU period by period. Every container has the use of its
// quota; what the quotas leave is for the bursts, shared max-min fair (water-filling) if it is not enough.
type contention struct {
	groups []group
	state  []holding
	age    int64
	strict tally
	loose  tally // under the published rule
	ageOf  int64 // of the run under the published rule
	shares []share
}

// holding is a container's work and tokens. The other fields are of the period in hand.
type holding struct {
	need, tokens int64
	held         int64 // of need, what even the tokens do not admit
	claim, grant int64
}

func newContention(groups []group) *contention {
	c := &contention{groups: groups, state: make([]holding, len(groups)), shares: make([]share, len(groups))}
	for j, g := range groups {
		c.state[j].tokens = g.burst
	}
	return c
}

// period plays one period with the demands of all containers.
func (c *contention) period(demand []int64) {
	free, claims, admitted := whole, int64(0), int64(0)
	for j := range c.state {
		s, g := &c.state[j], &c.groups[j]
		x := demand[j]
		n := s.need + x
		used := min(n, g.quota)
		free -= used
		s.need = n - used
		s.tokens = min(g.burst, s.tokens+g.quota-used)
		s.claim = min(s.need, s.tokens)
		s.grant = s.claim
		claims += s.claim
		held := s.need - s.claim
		admitted += x + s.held - held
		s.held = held
	}
	if claims > free {
		c.level(max(0, free))
	}
	for j := range c.state {
		c.book(j)
	}
	c.count(claims-free, free, admitted)
}

// level grants the claims up to the water level at which all that is free is used. The remainder of the division goes
// to the first who want it, a unit each.
func (c *contention) level(free int64) {
	for j := range c.state {
		c.state[j].grant = 0
	}
	for free > 0 {
		hungry := int64(0)
		for j := range c.state {
			if c.state[j].grant < c.state[j].claim {
				hungry++
			}
		}
		part := max(1, free/hungry)
		for j := range c.state {
			s := &c.state[j]
			more := min(part, s.claim-s.grant, free)
			s.grant += more
			free -= more
		}
	}
}

// book subtracts a container's grant. What it may use and did not get is what its neighbours cost it.
func (c *contention) book(j int) {
	s, sh := &c.state[j], &c.shares[j]
	s.need -= s.grant
	s.tokens -= s.grant
	v := c.groups[j].burst - s.tokens + s.need
	if v > c.groups[j].slack {
		sh.throttledWithout++
	}
	sh.heldWithout += float64(v)
	if s.held > c.groups[j].slack {
		sh.throttled++
	}
	sh.held += float64(s.held)
	sh.waiting += float64(s.claim - s.grant)
}

func (c *contention) count(over, free, admitted int64) {
	missed, coincided := int64(0), int64(0)
	if over > slackOfNode {
		missed = 1
	}
	if admitted > whole+slackOfNode {
		coincided = 1
	}
	c.age = (c.age + 1) * missed
	c.strict.add(missed, coincided, c.age, over)
	if free <= slackOfNode {
		missed = 0
	}
	c.ageOf = (c.ageOf + 1) * missed
	c.loose.add(missed, coincided, c.ageOf, over)
}

func (t *tally) add(missed, coincided, age, over int64) {
	t.periods++
	t.missed += missed
	t.coincided += coincided
	t.missedOnly += missed &^ coincided
	t.ages += age
	t.waiting += float64(max(0, over))
}

// shareOut is a replica of the model that shares out.
func (p *plan) shareOut(number int) outcome {
	m := len(p.demand)
	taps, groups := make([]tap, m), make([]group, m)
	var x block
	rows := make([]int64, m*blockLength) // a period's demands side by side
	for j := range taps {
		taps[j] = p.demand[j].open(number)
		groups[j] = p.scale.group(p.node.Containers[j])
	}
	c := newContention(groups)
	play := func(periods int) {
		for ; periods > 0; periods -= blockLength {
			k := min(periods, blockLength)
			for j := range taps {
				taps[j].fill(x[:k])
				for t, d := range x[:k] {
					rows[t*m+j] = d
				}
			}
			for t := range k {
				c.period(rows[t*m : t*m+m])
			}
		}
	}
	play(p.warm)
	c.strict, c.loose = tally{}, tally{}
	clear(c.shares)
	play(p.periods)
	return outcome{tally: c.strict, shared: c.loose, containers: c.shares}
}
