// Package requests measures, by eBPF, how long each container takes to answer the requests that reach its TCP sockets,
// without any change to the container.
//
// # Problem
//
// A limit harms the response times of a service, and nobody but its clients, or a library in the service, measures
// them. The kernel sees each request come in and each response go out.
//
// # Approach
//
// Three programs (bpf/requests.bpf.c; not on 6.1, tested from 6.12 on). sk_data_ready shows data that arrives at a
// socket, sock_send_length data that a thread has sent, and inet_sock_set_state connections that a listening socket
// accepts. On a connection with one request at a time, the response time is that from the arrival of the request's
// last piece to the last send before the next request. The container is that of the thread that sends.
//
// The throttled part of a response time is by how much the group's clock of throttled time (package probe) went on
// meanwhile, whatever the number of throttled CPUs.
//
// A connection that carries several requests at a time (HTTP/2, gRPC, pipelining) shows data that arrives after earlier
// data has been read and before any response. Such requests are counted as doubtful and in no length, and where they
// are more than one in a hundred the container's figures are withheld (Counts.Withheld).
//
// # Known limits
//
// A request that arrives in several pieces, of which the server reads one more than 100 us before the next arrives,
// looks like several requests: of a server that mostly takes large uploads the figures are withheld. A response that
// goes on for hours (a stream) is one request of hours. A response of several sends is over with the last: what a
// client still has to read of it is in no figure. On one machine a client may send its next request before the program
// at the last send has run: that send is counted for the request before, and where that cannot be told, for none
// (Counts.Overtaken). The kernel does not run a program that runs on that CPU already (__bpf_trace_run). An interrupt
// may come while it does; on 7.3 up to 11 of 10,000 runs were missed on emulated CPUs. A request whose arrival or whose
// send is missed is in no length. Time in the queue of new connections, and packets that wait for ksoftirqd, are before
// the arrival. A handshake of TLS is one more request of each connection. A proxy's times include those of its
// upstream.
//
// Throttled time is that of the group itself: a limit of the pod above it counts as part of the rest. While threads of
// the group stand still on one CPU, all of a response time is throttled time, also where the thread that answers runs
// on another CPU. Throttled time is not known of the first request at a port, where another group answers than the last
// time (Counts.Split).
package requests

//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -cflags "-Wall -Werror -mcpu=v3" -go-package requests kernel bpf/requests.bpf.c
