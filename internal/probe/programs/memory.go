package programs

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

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

// Has says whether a struct of the running kernel has a field. Without type information there is none, and no program
// either.
func Has(types *btf.Cache, name, field string) bool {
	var s *btf.Struct
	kernel, err := types.Kernel()
	return err == nil && kernel.TypeByName(name, &s) == nil && member(s, field)
}

func member(s *btf.Struct, field string) bool {
	for _, m := range s.Members {
		if m.Name == field {
			return true
		}
		if inner, ok := m.Type.(*btf.Struct); ok && m.Name == "" && member(inner, field) {
			return true
		}
	}
	return false
}
