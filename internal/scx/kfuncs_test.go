package scx

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// kernelTypes are a kernel's types, with these functions in this order.
func kernelTypes(t *testing.T, list ...*btf.Func) *btf.Spec {
	t.Helper()
	var all []btf.Type
	for _, f := range list {
		all = append(all, f)
	}
	return load(t, all)
}

// load makes a kernel's types of a list.
func load(t *testing.T, list []btf.Type) *btf.Spec {
	t.Helper()
	b, err := btf.NewBuilder(list, nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := b.Marshal(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := btf.LoadSpecFromReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

var (
	number = &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}
	aux    = btf.FuncParam{Name: "aux", Type: &btf.Pointer{Target: &btf.Const{Type: &btf.Struct{Name: auxType}}}}
)

// function is one of the kernel's, without a result.
func function(name string, params ...btf.FuncParam) *btf.Func {
	return &btf.Func{Name: name, Type: &btf.FuncProto{Return: &btf.Void{}, Params: params}, Linkage: btf.GlobalFunc}
}

// siblings73 are the functions of one name on 7.3, in the order of its types.
func siblings73(name string) []*btf.Func {
	return []*btf.Func{
		function(name), function(name + "___v2"), function(name+"___v2_impl", aux), function(name+"_impl", aux),
	}
}

// The fault of cilium/ebpf for which findKfunc and resolveKfuncs are there, in the fewest lines.
// It was seen in v0.22.0.
func TestLoaderFindsSiblings(t *testing.T) {
	types := kernelTypes(t, siblings73("f")...)
	var f *btf.Func
	if err := types.TypeByName("f", &f); !errors.Is(err, btf.ErrMultipleMatches) {
		t.Errorf("btf.Spec.TypeByName finds f (%v): the library is mended; remove findKfunc and resolveKfuncs", err)
	}
}

func TestFindKfunc(t *testing.T) {
	list := siblings73("f")
	for range list {
		list = append(list[1:], list[0]) // the order is that of the kernel's build
		types := kernelTypes(t, list...)
		for _, want := range list {
			if f := findKfunc(types, want.Name); f == nil || f.Name != want.Name {
				t.Errorf("%s: %v", want.Name, f)
			}
		}
		for _, name := range []string{"f___v3", "g", "f_imp"} {
			if f := findKfunc(types, name); f != nil {
				t.Errorf("%s: %v", name, f)
			}
		}
	}
}

// declared are the kernel functions that the scheduler calls, as its object declares them.
func declared(t *testing.T, spec *ebpf.CollectionSpec) []*btf.Func {
	t.Helper()
	names := map[string]bool{}
	for _, p := range spec.Programs {
		for name := range kfuncs(p.Instructions) {
			names[name] = true
		}
	}
	var list []*btf.Func
	for name := range names {
		f := findKfunc(spec.Types, name)
		if f == nil {
			t.Fatalf("the object does not declare %s", name)
		}
		list = append(list, function(name, f.Type.(*btf.FuncProto).Params...))
		list[len(list)-1].Type.(*btf.FuncProto).Return = f.Type.(*btf.FuncProto).Return
	}
	slices.SortFunc(list, func(a, b *btf.Func) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// unresolved counts the calls of kernel functions that are left to the library, and those that are resolved.
func unresolved(spec *ebpf.CollectionSpec) (left, done int) {
	for _, p := range spec.Programs {
		for i := range p.Instructions {
			ins := &p.Instructions[i]
			switch {
			case !ins.IsKfuncCall():
			case ins.Reference() != "":
				left++
			default:
				done++
			}
		}
	}
	return left, done
}

// Each call gets the ID of its function among the siblings, and what the library knows of an instruction besides stays.
func TestResolveKfuncs(t *testing.T) {
	spec, err := loadKernel()
	if err != nil {
		t.Fatal(err)
	}
	before := spec.Copy()
	var kernel []*btf.Func
	for _, f := range declared(t, spec) {
		proto := *f.Type.(*btf.FuncProto)
		proto.Params = append(slices.Clone(proto.Params), aux)
		kernel = append(kernel, f, function(f.Name+"___v2"), function(f.Name+"___v2_impl", aux),
			&btf.Func{Name: f.Name + "_impl", Type: &proto, Linkage: btf.GlobalFunc})
	}
	types := kernelTypes(t, kernel...)
	if err := resolveKfuncs(spec, types); err != nil {
		t.Fatal(err)
	}
	if left, done := unresolved(spec); left > 0 || done == 0 {
		t.Errorf("%d calls are left, %d are resolved", left, done)
	}
	for name, p := range spec.Programs {
		for i, ins := range p.Instructions {
			old := before.Programs[name].Instructions[i]
			if ins.Symbol() != old.Symbol() || ins.Source() != old.Source() || ins.Dst != old.Dst ||
				btf.FuncMetadata(&ins) != btf.FuncMetadata(&old) {
				t.Fatalf("%s, instruction %d: %v became %v", name, i, old, ins)
			}
			if !old.IsKfuncCall() {
				continue
			}
			target, err := types.TypeByID(btf.TypeID(ins.Constant))
			if err != nil || target.TypeName() != old.Reference() {
				t.Errorf("%s, instruction %d: %v calls %v, %v", name, i, old, target, err)
			}
		}
	}
}

// Where the kernel has the function by which to set a slice, the programs know that it does, and else nothing needs it.
func TestWeakFunction(t *testing.T) {
	const weak = "scx_bpf_task_set_slice"
	o, err := Own(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if functions, _ := o.needs(); slices.Contains(functions, weak) || !slices.Contains(functions, "scx_bpf_kick_cpu") {
		t.Errorf("needs %v", functions)
	}
	spec := o.spec.Copy()
	asked := func() (n int, with []int64) {
		for name, p := range spec.Programs {
			for i := range p.Instructions {
				if ins := o.spec.Programs[name].Instructions[i]; ins.OpCode.IsDWordLoad() && ins.Reference() == weak {
					n, with = n+1, append(with, p.Instructions[i].Constant)
				}
			}
		}
		return n, with
	}
	for _, f := range declared(t, spec) {
		if f.Name != weak {
			continue
		}
		if err := resolveKfuncs(spec, kernelTypes(t, f)); err != nil {
			t.Fatal(err)
		}
	}
	if n, with := asked(); n == 0 || slices.Contains(with, 0) {
		t.Errorf("called %d times, and got %v", n, with)
	}
}

// A function of ours may begin with a call: what names the function stays there.
func TestResolvedFirst(t *testing.T) {
	f := function("f")
	call := btf.WithFuncMetadata(asm.Instruction{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.Call),
		Src: asm.PseudoKfuncCall}, f)
	call = call.WithSymbol("first").WithReference("called")
	next := resolved(&call, 7)
	if !next.IsKfuncCall() || next.Constant != 7 || next.Symbol() != "first" || btf.FuncMetadata(&next) != f ||
		next.Reference() != "" {
		t.Errorf("%v became %v", call, next)
	}
}

// A function that the kernel's own types lack is left to the library, and one with another signature is refused.
func TestResolveRefuses(t *testing.T) {
	const name = "scx_bpf_kick_cpu"
	n, p := btf.FuncParam{Type: number}, btf.FuncParam{Type: &btf.Pointer{Target: number}}
	for _, c := range []struct {
		what string
		f    *btf.Func
		want string
	}{
		{"another argument", function(name, p, n), "another signature"},
		{"one argument less", function(name, n), "another signature"},
		{"one more", function(name, n, n, n), "another signature"},
		{"one that the verifier passes", function(name, n, n, aux), ""},
	} {
		spec, err := loadKernel()
		if err != nil {
			t.Fatal(err)
		}
		all, _ := unresolved(spec)
		err = resolveKfuncs(spec, kernelTypes(t, c.f))
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v", c.what, err)
			}
			continue
		}
		if left, done := unresolved(spec); err != nil || done == 0 || left == 0 || left+done != all {
			t.Errorf("%s: %v, %d of %d calls are resolved, %d left", c.what, err, done, all, left)
		}
	}
}

// A preflight names the functions that the verifier will refuse, and why.
func TestLacksImpl(t *testing.T) {
	older := aux
	older.Name = "aux__prog"
	n := btf.FuncParam{Name: "n", Type: number}
	for _, c := range []struct {
		what string
		list []*btf.Func
		want string
	}{
		{"all is well", siblings73("f"), ""},
		{"it is declared twice", []*btf.Func{function("f", n, aux), function("f_impl", n, aux)}, ""},
		{"no implicit argument", []*btf.Func{function("f", n)}, ""},
		{"the older way", []*btf.Func{function("f", n, older)}, ""},
		{"7.1 and 7.2", []*btf.Func{function("f", n, aux)}, "lacks f_impl"},
		{"the sibling's", []*btf.Func{function("f", n, aux), function("f___v2_impl", n, aux)}, "lacks f_impl"},
	} {
		found := knowsFunctions(kernelTypes(t, c.list...), []string{"f"})
		if found.OK != (c.want == "") || !strings.Contains(found.Detail, c.want) {
			t.Errorf("%s: %+v", c.what, found)
		}
	}
}

// The flags are the kernel's own, whatever the object was compiled with.
func TestFlagsAreTheKernels(t *testing.T) {
	spec, err := loadKernel()
	if err != nil {
		t.Fatal(err)
	}
	wanted := map[string][]btf.EnumValue{
		"scx_enq_flags":           {{Name: "SCX_ENQ_HEAD", Value: 0x101}, {Name: "SCX_ENQ_PREEMPT", Value: 0x102}},
		"scx_kick_flags":          {{Name: "SCX_KICK_IDLE", Value: 0x103}, {Name: "SCX_KICK_PREEMPT", Value: 0x104}},
		"scx_pick_idle_cpu_flags": {{Name: "SCX_PICK_IDLE_CORE", Value: 0x105}},
		"scx_ent_flags":           {{Name: "SCX_TASK_QUEUED", Value: 0x106}},
	}
	var enums []btf.Type
	count := map[int64]int{}
	for name, values := range wanted {
		enums = append(enums, &btf.Enum{Name: name, Size: 4, Values: values})
		for _, v := range values {
			count[int64(v.Value)] = 0
		}
	}
	types := load(t, enums)
	for _, p := range spec.Programs {
		for i := range p.Instructions {
			ins := p.Instructions[i]
			relocation := btf.CORERelocationMetadata(&ins)
			if relocation == nil || !strings.Contains(relocation.String(), "enumval_value") {
				continue
			}
			fixups, err := btf.CORERelocate([]*btf.CORERelocation{relocation}, []*btf.Spec{types}, spec.ByteOrder,
				spec.Types.TypeID)
			if err != nil {
				t.Fatal(err)
			}
			if err := fixups[0].Apply(&ins); err != nil {
				t.Fatal(err)
			}
			count[ins.Constant]++
		}
	}
	for value, n := range count {
		if n == 0 || len(count) != 6 {
			t.Errorf("the flag %#x is used %d times, of %d flags", value, n, len(count))
		}
	}
}
