package cpu

// Contains says whether a CPU is in the set.
func (s Set) Contains(c int) bool {
	lo, hi := 0, len(s)
	for lo < hi {
		if mid := (lo + hi) / 2; s[mid] < c {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo < len(s) && s[lo] == c
}

// Union has the CPUs of both.
func (s Set) Union(o Set) Set {
	out := make(Set, 0, len(s)+len(o))
	for len(s) > 0 && len(o) > 0 {
		switch {
		case s[0] < o[0]:
			out, s = append(out, s[0]), s[1:]
		case s[0] > o[0]:
			out, o = append(out, o[0]), o[1:]
		default:
			out, s, o = append(out, s[0]), s[1:], o[1:]
		}
	}
	return append(append(out, s...), o...)
}

// Minus has the CPUs of s that are not in o.
func (s Set) Minus(o Set) Set {
	out := make(Set, 0, len(s))
	for _, c := range s {
		if !o.Contains(c) {
			out = append(out, c)
		}
	}
	return out
}

// And has the CPUs that are in both.
func (s Set) And(o Set) Set {
	out := make(Set, 0, min(len(s), len(o)))
	for _, c := range s {
		if o.Contains(c) {
			out = append(out, c)
		}
	}
	return out
}

// Within says whether every CPU of s is in o.
func (s Set) Within(o Set) bool {
	for _, c := range s {
		if !o.Contains(c) {
			return false
		}
	}
	return true
}

// Equal says whether both have the same CPUs.
func (s Set) Equal(o Set) bool { return len(s) == len(o) && s.Within(o) }
