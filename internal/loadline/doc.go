// Package loadline is the contention model: how often containers that burst at the same time leave a period's work
// undone, and what a burst does for each of them.
//
// # Problem
//
// A container may use, beyond its quota, what it saved in earlier periods, up to its burst. When several do so in one
// period, they may ask for more than the node has. The model of CPU burst's authors (docs/MODEL.md has the sources)
// asks for the probability of that, P(WCET > 1 period), and for the mean time E(WCET) that a period's work takes.
//
// # Approach
//
// Each container is a Lindley queue of its own, whatever the others do: with V = burst - tokens + backlog,
//
//	V' = max(0, V + x - quota)
//
// It is throttled while V is above its burst, and what it admits, A, does not depend on its neighbours. The node is one
// more such queue, of what they all admit: E' = max(0, E + sum of A - capacity), and a period is broken if E > 0.
//
// So there are exact answers. Queue is the law of V by the Wiener-Hopf factorisation, for every burst at once; History
// is the same for a recording in its order. Coincidence is J = P(sum of A > capacity) by convolution, a lower bound of
// P(WCET > 1) that is next to it where both are small. What remains, the work left over from one period to the next, is
// found by Simulate, a Monte Carlo with J as its control variate. LargestBurst, MostPods, LimitFor, TurningRho and
// Advise turn the model round; Size does so for the agent, from rolling recordings, in milliseconds.
//
// Chance comes from a seed and is integer arithmetic: the same arguments give the same counts on every platform and for
// any number of CPUs.
//
// # Known limits
//
// Demand arrives at the beginning of a period, in all containers at once: kernel periods are not aligned, and the model
// is then on the careful side. A container could use all CPUs at once. The kernel shares by weight, and does not put
// quotas before bursts; the sum over the containers is the same. Where the quotas sum to more than the capacity, a
// container may lose tokens by waiting, which the queue of one container does not see.
// And a recording speaks for demand like itself.
package loadline
