package scx

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// auxType is the type of the argument that the verifier passes to a kernel function (KF_IMPLICIT_ARGS, from 7.1).
const auxType = "bpf_prog_aux"

// findKfunc returns the kernel's function of this name; nil: the kernel has none.
//
// btf.Spec.TypeByName is of no use for it: up to v0.22.0, AnyTypesByName deletes elements of the slice that it walks
// over and skips the next one each time. Of the two siblings NAME___v2 and NAME___v2_impl (7.1) the second one stays,
// and TypeByName reports multiple matches. What AnyTypesByName returns besides the wanted function is left out here.
// TestLoaderFindsSiblings fails as soon as the library does without this.
func findKfunc(types *btf.Spec, name string) *btf.Func {
	list, err := types.AnyTypesByName(name)
	if err != nil {
		return nil
	}
	for _, t := range list {
		if f, ok := t.(*btf.Func); ok && f.Name == name {
			return f
		}
	}
	return nil
}

// resolveKfuncs writes the kernel's type IDs into the calls of kernel functions, so that the library, which may not
// find them (findKfunc), has nothing left to look up. A function that the kernel's own types lack is left to the
// library, which also knows those of modules, and weak functions.
func resolveKfuncs(spec *ebpf.CollectionSpec, types *btf.Spec) error {
	for _, p := range spec.Programs {
		called := kfuncs(p.Instructions)
		for i := range p.Instructions {
			ins := &p.Instructions[i]
			name := ins.Reference()
			if !called[name] || !ins.IsKfuncCall() && !ins.OpCode.IsDWordLoad() {
				continue
			}
			target := findKfunc(types, name)
			if target == nil {
				continue
			}
			if err := checkSignature(spec.Types, target); err != nil {
				return fmt.Errorf("program %s: %w", p.Name, err)
			}
			id, err := types.TypeID(target)
			if err != nil {
				return fmt.Errorf("program %s: function %s: %w", p.Name, name, err)
			}
			*ins = resolved(ins, id)
		}
	}
	return nil
}

// lacksImpl says that the verifier refuses every call of a kernel function: it passes the last argument itself, and
// looks for the full signature at NAME_impl (kernel/bpf/verifier.c, find_kfunc_impl_proto), which the kernel's types
// lack. That is a fault of the kernel's build: about half of the functions of sched_ext have it in Debian's 7.1.13 and
// 7.2.12, none in 7.3.4. An argument whose name ends in __prog is the older way to say the same, and needs no second
// function.
func lacksImpl(types *btf.Spec, f *btf.Func) bool {
	proto, ok := f.Type.(*btf.FuncProto)
	if !ok || len(proto.Params) == 0 {
		return false
	}
	last := proto.Params[len(proto.Params)-1]
	return implicit(last.Type) && !strings.HasSuffix(last.Name, "__prog") && findKfunc(types, f.Name+"_impl") == nil
}

// kfuncs are the kernel functions that a program calls.
func kfuncs(list asm.Instructions) map[string]bool {
	called := map[string]bool{}
	for i := range list {
		if list[i].IsKfuncCall() {
			called[list[i].Reference()] = true
		}
	}
	return called
}

// resolved is an instruction without the metadata by which the library looks up the function. A load of the function's
// address is a test whether the function exists: any value but 0 says that it does.
func resolved(ins *asm.Instruction, id btf.TypeID) asm.Instruction {
	next := asm.Instruction{OpCode: ins.OpCode, Dst: ins.Dst, Src: ins.Src, Constant: int64(id)}
	if s := ins.Symbol(); s != "" {
		next = next.WithSymbol(s)
	}
	if s := ins.Source(); s != nil {
		next = next.WithSource(s)
	}
	if f := btf.FuncMetadata(ins); f != nil {
		next = btf.WithFuncMetadata(next, f)
	}
	return next
}

// checkSignature compares the kernel's function with the declaration in the object.
func checkSignature(object *btf.Spec, target *btf.Func) error {
	declared := findKfunc(object, target.Name)
	if declared == nil {
		return fmt.Errorf("function %s: the object does not declare it", target.Name)
	}
	has, ok := target.Type.(*btf.FuncProto)
	wants, declaredOK := declared.Type.(*btf.FuncProto)
	if !ok || !declaredOK {
		return fmt.Errorf("function %s: %w", target.Name, errors.ErrUnsupported)
	}
	visible := *has
	if n := len(has.Params); n == len(wants.Params)+1 && implicit(has.Params[n-1].Type) {
		visible.Params = has.Params[:n-1]
	}
	if err := btf.CheckTypeCompatibility(wants, &visible); err != nil {
		return fmt.Errorf("function %s: the kernel's has another signature: %w", target.Name, err)
	}
	return nil
}

// implicit says whether the verifier passes an argument of this type.
func implicit(t btf.Type) bool {
	p, ok := btf.As[*btf.Pointer](t)
	if !ok {
		return false
	}
	s, ok := btf.As[*btf.Struct](p.Target)
	return ok && s.Name == auxType
}
