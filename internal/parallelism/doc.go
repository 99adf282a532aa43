// Package parallelism says whether the language runtimes of a container can use a burst at all. It is pure: facts about
// processes in, a verdict out.
//
// # Problem
//
// A burst gives a container more CPUs than its limit for a moment. A runtime that sizes itself by the limit cannot use
// them: the threads are not there. A Go service with a limit of 2 CPUs and a cap of 600 % gets 12 CPUs' worth of time
// in a period, and runs Go code on 2 threads. No counter shows that; the burst is just not used.
//
// What the runtimes do, by their own documents:
//
//   - Go since 1.25 (go.dev/doc/go1.25, "Container-aware GOMAXPROCS"; runtime/cgroup_linux.go): GOMAXPROCS is the limit
//     of the process's own control group, rounded up and at least 2, or the CPUs of the affinity mask where these are
//     fewer. The limit is read again about once a second while the program runs. A module that asks for Go 1.24 or
//     earlier has neither (GODEBUG containermaxprocs=0, updatemaxprocs=0), and earlier Go takes the affinity mask
//     alone. The variable GOMAXPROCS replaces all of it. The proposal (golang.org/issue/73193) names bursts as what is
//     lost.
//   - HotSpot since 10 and 8u191 (os::active_processor_count, CgroupUtil::processor_count): quota / period rounded up,
//     at most the CPUs of the affinity mask. The GC's, the compiler's and ForkJoinPool's threads are sized by it, and
//     what asks Runtime.availableProcessors, such as Netty. -XX:ActiveProcessorCount replaces it,
//     -XX:-UseContainerSupport leaves the affinity mask. Below 2 the JVM is no "server" machine and takes the serial
//     collector.
//   - Node runs JavaScript on one thread, and on one more for each worker thread (nodejs.org, "Don't Block the Event
//     Loop"). Files, DNS, crypto and zlib run on a pool of UV_THREADPOOL_SIZE threads, 4 by default and 1024 at most
//     (docs.libuv.org, threadpool). More JavaScript at once takes more processes or workers.
//
// # Approach
//
// The parallelism of each process follows from the rules above, and from what the process was started with. It is at
// most the CPUs that the process may run on. The sum over a container's runtimes is compared with the most that a burst
// can give in one period: the cap of the policy, or limit and kernel burst together, and never more than the
// container's CPUs. If a tenth of that or more finds no thread, the verdict says so, and what to set:
// the burst rounded up to whole threads.
//
// Three answers are kept apart: enough, too few, and not known. Something that could not be read makes the parallelism
// unknown, and with it the verdict; it is never taken for its default. Nothing is said either where processes of no
// known runtime use most of the container's CPU time, since these are whom a burst is for.
//
// # Known limits
//
// The number is derived, not measured: a program that calls runtime.GOMAXPROCS is not seen to, and
// go.uber.org/automaxprocs is taken to be used where it is linked. The version of a JVM is not known: one without
// container support, or that knows v1 only, counts all CPUs. Node's workers are counted by their event loops, of which
// Node itself has three (measured with Node 20): in a version that has two, one worker is not seen. A JVM reads the
// limit that stood when a pool was made, which may have been raised.
// Go follows a raised quota after a second or two; a refill and the kernel's burst do not change the limit that it
// reads. For the JVM the number bounds pools only: an application's own threads run on all CPUs. Threads in system
// calls and cgo come on top of GOMAXPROCS, and Node's pool on top of its JavaScript. A cap of the start alone
// (startupBurstPercent) is not looked at. Even below the limit more threads make a short peak shorter, and where
// nothing bursts they also use up the limit sooner: that is a trade, and not judged here.
package parallelism
