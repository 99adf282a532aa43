package loadline

// lindley is one container, apart from all others. With V = burst - tokens + backlog, whatever its neighbours do,
//
//	V' = max(0, V + x - quota)
//
// (docs/MODEL.md derives it). It is throttled in a period if V' > burst, and admits to the node's CPUs the demand less
// what it has to hold back: x + max(0, V - burst) - max(0, V' - burst).
type lindley struct {
	group
	v, held int64 // V and max(0, V - burst)
	share
}

// pass takes the container through len(x) periods and adds to sum what it admits.
func (q *lindley) pass(x, sum []int64) {
	v, held, quota, burst := q.v, q.held, q.quota, q.burst
	sum = sum[:len(x)]
	for i, d := range x {
		v = max(0, v+(d-quota))
		next := max(0, v-burst)
		sum[i] += d + held - next
		held = next
	}
	q.v, q.held = v, held
}

// watch counts what the next pass will do. It is for demand whose exact law is not known.
func (q *lindley) watch(x []int64) {
	v, edge, held, without := q.v, q.burst+q.slack, int64(0), int64(0)
	for _, d := range x {
		v = max(0, v+(d-q.quota))
		q.throttled += int64(uint64(edge-v) >> 63)
		q.throttledWithout += int64(uint64(q.slack-v) >> 63)
		held += max(0, v-q.burst)
		without += v
	}
	q.share.held += float64(held)
	q.heldWithout += float64(without)
}

// machine is the node: what was admitted and not done in a period waits for the next. E' = max(0, E + sum - capacity).
type machine struct {
	e, age int64
	tally
}

// tally is what a run counts. Its sums are integers: their order does not matter.
type tally struct {
	periods    int64
	missed     int64   // periods that ended with admitted work undone: WCET > 1
	coincided  int64   // periods that admitted more than the capacity
	ages       int64   // the sum of the ages of the runs of missed periods: E(WCET) - 1 is its mean
	missedOnly int64   // missed without coinciding: the work is left over from earlier periods
	waiting    float64 // the sum of the work undone
}

const slackOfNode = int64(1 << capacityBits / 1000000)

func (m *machine) pass(sum []int64) {
	var waiting int64
	for _, a := range sum {
		m.e = max(0, m.e+a-whole)
		waiting += m.e
		missed := int64(uint64(slackOfNode-m.e) >> 63)
		coincided := int64(uint64(slackOfNode+whole-a) >> 63)
		m.age = (m.age + 1) * missed
		m.missed += missed
		m.coincided += coincided
		m.missedOnly += missed &^ coincided
		m.ages += m.age
	}
	m.waiting += float64(waiting)
	m.periods += int64(len(sum))
}
