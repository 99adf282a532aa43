// Package replay runs a recorded time again under another limit or policy, and compares what was with what would have been.
//
// # Problem
//
// "What would a limit of 0.8, or the policy auto, have done at 03:12?" The flight recorder (package flight) has, for each period
// of each container, the CPU time used and the wall time throttled. It does not have the demand: a limit that throttles hides how
// much work stood waiting, and when it came.
//
// # Approach
//
// Series puts the rows of a container on one grid of periods. Reading makes demand of it, as pieces of work with the time at which
// they came. A run of throttled places is an episode. All that was held back in an episode has been done by the end of the first
// place that is not throttled, so the sum is known and only the time is open. It has two bounds:
//
//   - Late: a place's demand is what was used in it. Work came as it was done, and next to nothing was held back.
//   - Early: while the group stood throttled, its threads would have gone on at the rate at which they ran before (rate), up to the
//     work that was done until the end of the episode. An episode that never ended has the rate alone as its bound.
//
// Each reading is the load of a group of the simulated kernel (package sim), on which package trial drives the shipped agent: no
// decision is made here. A figure is that of the early reading, as loadline.Uncensor takes it, and the range is that of both.
//
// Delay is how much later a piece of work was done than without a limit: of a simulated job its response time without its cost;
// of the record the time at which the recorded use reached the same sum. Its p99 is by CPU time: one percent of the work came later.
//
// Neighbours are all other recorded containers. Each demands what it used when it used it, without a limit, so that it waits for CPUs
// only. What they pay is that waiting, less the same in a run in which the container too does what it did.
//
// # Known limits
//
// What has no limit is not recorded, nor are the system's tasks: the node of a replay is less loaded than it was, and the guard of the
// threshold grants more. Limits of pods are not recorded. The simulated kernel has no ticks, no slices and no places of CPUs (package
// sim). Work that would have come only because earlier work was done sooner (a client that waits for an answer before it asks again)
// is in neither bound. A rate is seen in places that begin and end throttled; a container without such places has a lower bound of it.
package replay
