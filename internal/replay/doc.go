// Package replay runs a recorded time again under another limit or policy,
// and compares what was with what would have been.
//
// # Problem
//
// "What would a limit of 0.8, or the policy auto, have done at 03:12?" The flight recorder (package flight) has, for
// each period of each container, the CPU time used and the wall time throttled. It does not have the demand: a limit
// that throttles hides how much work stood waiting, and when it came.
//
// # Approach
//
// Series puts the rows of a container on one grid of periods. A run of throttled places is an episode. All that was
// held back in an episode has been done by the end of the first place that is not throttled: the sum is known,
// and the time is open.
//
// A place that begins and ends throttled shows how many threads ran in it, for they ran all the time in which they did
// not stand. So the work of each thread is told apart (work.go): one that did not run in a place, or ran in a part of
// it only, was not there, and what it does later came later. For the rest there are two bounds,
// and readings between them (demand.go):
//
//   - Late: work came as it was done, and next to nothing was held back.
//   - Early: each thread would have gone on while it stood, up to the work that was done until the end of the episode.
//     What comes after the time that is asked for says how its last episode ended. In one that never ended there is no
//     such bound.
//   - Likely: as Early, but a thread's work comes in parts, by chance: as long after other work as it is seen to come
//     where the group does not stand (comings in work.go), and so that the thread is never without while it is busy
//     (spell.go). Requests of many clients come as often at any time, so that a long episode is many of them. What
//     comes in turns, a batch or a collector, comes so much later that one episode is one turn. There are eight such
//     readings.
//
// Each reading is the load of a group of the simulated kernel (package sim), on which package trial drives the shipped
// agent: no decision is made here. A figure is the mean of the likely readings, its range that of all.
//
// Delay is how much later a piece of work was done than without a limit: of a simulated job its response time without
// its cost, of the record the time between a thread's work as it was done and as it would have been. Its p99 is by CPU
// time: one percent of the work came later.
//
// Neighbours are all other recorded containers. Each demands what it used when it used it, without a limit, so that it
// waits for CPUs only. What they pay is that waiting, less the same in a run in which the
// container too does what it did.
//
// # Known limits
//
// What has no limit is not recorded, nor are the system's tasks: the node of a replay is less loaded than it was, and
// the guard of the threshold grants more. Limits of pods are not recorded. The simulated kernel has no ticks, no slices
// and no places of CPUs (package sim). Work that would have come only because earlier work was done sooner (a client
// that waits for an answer before it asks again) is in neither bound. The amounts that come are drawn as if they were
// exponential, and work is taken to come alike in the whole time that is replayed: where two kinds of work are mixed,
// requests with a collector, no reading is right. A p99 of a minute hangs on one or two episodes, whose arrivals are
// not known: beside the mean of eight readings, reality is one of them.
package replay
