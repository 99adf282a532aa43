package loadline

import "math/bits"

// random is SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014): a counter
// and a mixer, so that any number of streams is one hash away and its words are computed side by side. Chance is
// integer arithmetic throughout: the same seed gives the same numbers on every platform.
type random struct{ state uint64 }

const golden = 0x9e3779b97f4a7c15

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// stream is the generator of one purpose: streams of the same seed with different numbers are independent.
func stream(seed uint64, numbers ...int) random {
	state := mix(seed + golden)
	for _, n := range numbers {
		state = mix(state ^ mix(uint64(n)+golden))
	}
	return random{state}
}

func (r *random) word() uint64 {
	r.state += golden
	return mix(r.state)
}

// below is a number from 0 to n-1 (Lemire's multiplication; the bias is n/2^64).
func (r *random) below(n int) int {
	high, _ := bits.Mul64(r.word(), uint64(n))
	return int(high)
}
