package programs

import "github.com/cilium/ebpf/btf"

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
