package trace

import "time"

// grid turns readings of a counter, each taken soon after the end of a period, into its growth in each period. Between
// two readings the counter is taken to grow evenly: a late reading is shared out over the periods that it spans.
type grid struct {
	period time.Duration
	next   int           // the period whose end comes next
	at     time.Duration // of the last reading, since the beginning of period 0
	count  time.Duration // the counter then
	edge   float64       // the counter at the beginning of period next
}

func newGrid(period, at, count time.Duration) grid {
	return grid{period: period, at: at, count: count, edge: float64(count)}
}

// add takes a reading and returns the growth, in nanoseconds, in each of the periods that end by then. A counter that
// runs backwards counts as unchanged: a reading was torn, and the next one corrects it.
func (g *grid) add(at, count time.Duration) []float64 {
	count = max(count, g.count)
	var grown []float64
	for end := time.Duration(g.next+1) * g.period; end <= at; end += g.period {
		value := float64(count)
		if at-end > g.period/100 && at > g.at {
			part := max(0, float64(end-g.at)/float64(at-g.at))
			value = float64(g.count) + float64(count-g.count)*part
		}
		grown = append(grown, value-g.edge)
		g.edge = value
		g.next++
	}
	g.at, g.count = at, count
	return grown
}
