package policy

import "plimsoll/internal/strategy"

// AskedBurst is the most that a strategy lets a container use in one period beyond its limit, in limits.
func AskedBurst(s strategy.Strategy, r Rules) float64 {
	var burst, raise float64
	if s.Policy.Burst() && r.Burst {
		burst = float64(s.CPUBurstPercent) / 100
		if !r.BurstAboveQuota {
			burst = min(burst, 1)
		}
	}
	if s.Policy.Quota() {
		raise = float64(s.CFSQuotaBurstPercent-100) / 100
	}
	return max(burst, raise)
}

// cut reduces what a strategy allows beyond the limit by a part.
func cut(s strategy.Strategy, part float64, r Rules) strategy.Strategy {
	if part <= 0 {
		return s
	}
	share := 1 - part
	s.CPUBurstPercent = min(s.CPUBurstPercent, int64(100*share*AskedBurst(s, r)))
	s.CFSQuotaBurstPercent = 100 + int64(share*float64(s.CFSQuotaBurstPercent-100))
	s.StartupBurstPercent = 100 + int64(share*float64(s.StartupBurstPercent-100))
	return s
}
