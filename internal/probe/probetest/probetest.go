// Package probetest says what programs cost the kernel: the memory of their maps, and the work of the verifier.
package probetest

import (
	"testing"

	"github.com/cilium/ebpf"

	"plimsoll/internal/probe/programs"
)

// FarFromLimit checks that the kernel's verifier went through few instructions of each program. It gives up at a
// million (include/linux/bpf.h, BPF_COMPLEXITY_LIMIT_INSNS), and a kernel of another version may need some times as
// many. Before 5.16 (aba64c7da983) the kernel does not say.
func FarFromLimit(t *testing.T, list []programs.Program) {
	t.Helper()
	for _, program := range list {
		info, err := program.Info()
		if err != nil {
			t.Fatalf("%s: %v", program.Name, err)
		}
		if n, ok := info.VerifiedInstructions(); ok {
			t.Logf("%s: %d instructions", program.Name, n)
			if n > 100_000 {
				t.Errorf("%s: %d instructions, of a million at most", program.Name, n)
			}
		}
	}
}

// Memory is what the maps of a collection take in the kernel, in bytes, on a machine with so many possible CPUs, and
// by map. Of hash tables that are not allocated beforehand (BPF_F_NO_PREALLOC) it is that of so many entries.
//
// An entry of a hash table has a header of 48 bytes, one of an array none, both in units of 8 bytes; a table
// allocated beforehand has one more entry for each CPU, and a bucket of 16 bytes for each entry, to a power of two
// (kernel/bpf/hashtab.c, htab_map_alloc and prealloc_init).
func Memory(spec *ebpf.CollectionSpec, cpus, entries int) (sum int64, by map[string]int64) {
	by = map[string]int64{}
	for name, m := range spec.Maps {
		n := memory(m, int64(cpus), int64(entries))
		by[name] = n
		sum += n
	}
	return sum, by
}

const (
	noPrealloc = 1 // include/uapi/linux/bpf.h, BPF_F_NO_PREALLOC
	header     = 48
	bucket     = 16
)

func memory(m *ebpf.MapSpec, cpus, entries int64) int64 {
	key, value, most := round(int64(m.KeySize)), round(int64(m.ValueSize)), int64(m.MaxEntries)
	switch m.Type {
	case ebpf.Hash:
		if m.Flags&noPrealloc != 0 {
			return min(entries, most)*(header+key+value) + buckets(most)
		}
		return (most+cpus)*(header+key+value) + buckets(most)
	case ebpf.PerCPUArray:
		return most * value * cpus
	case ebpf.RingBuf:
		return most
	}
	return most * value
}

func round(n int64) int64 { return (n + 7) / 8 * 8 }

func buckets(most int64) int64 {
	n := int64(1)
	for n < most {
		n *= 2
	}
	return n * bucket
}
