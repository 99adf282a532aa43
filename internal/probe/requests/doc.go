// Package requests measures, by eBPF, how long the requests of each control group's servers take.
//
// # Problem
//
// What a limit costs a service is the time of its requests. Few services report it, each in a way of its own, and
// a proxy or an agent in the service changes what it measures.
//
// # Approach
//
// Tracepoints at the sockets (bpf/requests.bpf.c) follow each connection that a server accepted: data arrive
// (sk_data_ready), the server's task has sent (sock_send_length), the connection begins and ends (inet_sock_set_state).
// Histograms in the kernel count the times by group; no event is sent. The answer ends with its last send: Apache's first
// one comes after 2.4 ms of 25. Sockets that are older than the programs are found by an iterator, once for each network
// namespace. Package responsetime says what the counts mean, and when they mean nothing.
//
// A clock for each group, kept at context switches, runs while a limit keeps the group's tasks from running: the group's
// own limit or one above it. Its difference between arrival and answer is the throttled part of a response. The clock is
// loaded by itself: a kernel that refuses it loses the throttled part alone.
//
// The programs are objects of their own. Nothing of them is loaded unless request times are asked for.
//
// # Known limits
//
// The tracepoints are there from 6.3 on (40e0b0908142, 6e6eda44b939); 6.12 is the oldest kernel that is tested. Time before
// the arrival at the socket is not seen: the queue of the network card and of connections that wait to be accepted. The
// client's time is longer by its own wake-up, 20 to 50 us on one host. Followed are TCP sockets, those of user space: no
// unix sockets, no UDP (HTTP/3), no MPTCP. A proxy's time includes that of the servers behind it.
//
// The clock stops when any task of the group runs, though others may still be throttled on other CPUs. Below 6.18 it
// starts when a runnable task's queue stands still, seen at a switch or a wake-up. The first request at a port has no
// throttled part: until the server has answered, its group is not known.
package requests

//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -cflags "-Wall -Werror -mcpu=v3" -go-package requests kernel bpf/requests.bpf.c
