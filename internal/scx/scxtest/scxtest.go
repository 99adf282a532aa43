// Package scxtest gives tests compiled schedulers other than Plimsoll's own: one that works and two that do not.
package scxtest

import "bytes"

//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -no-global-types -cflags "-Wall -Werror -mcpu=v3" -go-package scxtest fifo bpf/fifo.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -no-global-types -cflags "-Wall -Werror -mcpu=v3 -DSTALL" -go-package scxtest stall bpf/fifo.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -no-global-types -cflags "-Wall -Werror -mcpu=v3 -DREFUSE" -go-package scxtest refuse bpf/fifo.bpf.c

// Fifo is a scheduler named fifo that works, without priorities.
func Fifo() []byte { return bytes.Clone(_FifoBytes) }

// Stall is a scheduler named stall that forgets tasks 0.3 s after it began. The kernel's watchdog waits for 30 s.
func Stall() []byte { return bytes.Clone(_StallBytes) }

// Refuse is a scheduler named refuse whose init fails: the kernel accepts its programs, and does not put it in force.
func Refuse() []byte { return bytes.Clone(_RefuseBytes) }
