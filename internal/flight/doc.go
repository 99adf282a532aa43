// Package flight encodes what containers did in each period of their limits as rows of Parquet:
// the flight recorder's format.
//
// # Problem
//
// "What happened at 03:12?" is asked hours later, of a node where nobody looked. A node of 250 containers has 216
// million periods of 100 ms a day. They have to be kept always, for little CPU, memory and disk, and read by programs
// that know nothing of Plimsoll.
//
// # Approach
//
// One row is a container-minute (Minute). The row has exact sums of the minute, and lists: CPU time and throttled time
// of each period, and the places of what seldom is there (refills, changes of the quota). docs/RECORD.md documents the
// columns, and Schema is the version in each file's metadata.
//
// Three things make a period small. Its CPU time is rounded to 10 us and to seven significant bits (round): the noise
// below that is most of the entropy, and less than the tick to which the kernel counts; the sums are exact. As a
// float32 these bits are the exponent in one byte and the mantissa in the next, which BYTE_STREAM_SPLIT lays one after
// the other for zstd (codec). Throttled time is a list in ms, of one byte that counts.
// A minute in which the group slept has no row.
//
// Builder collects periods into minutes, by their place: the period timer of a group keeps its phase, also while the
// group sleeps (kernel/sched/fair.c, start_cfs_bandwidth: hrtimer_forward_now), so that the end of the first period
// gives the places of all others, and a late timer does not shift them. The kernel's record does not say how long the
// period is: records of a group wait until the agent has named it (Know), or until their minute is closed.
//
// # Known limits
//
// A sleeping group has no periods: its places hold 0. The kernel counts CPU time up to the last tick of each CPU, and
// what came after it is in the next period. A clock that was set back by more than a second gives two rows of one
// minute: a reader gets both, in the order in which they were written. Where the kernel's ring was full, Batch.Lost
// counts the periods, and their places hold 0.
package flight
