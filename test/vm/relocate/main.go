// Command relocate says for kernels that cannot be booted here whether the programs would find what they read: it takes
// files with type information (BTF, or an ELF file with it),
// and relocates every program of the committed objects against each.
//
//	go run ./test/vm/relocate /sys/kernel/btf/vmlinux rhel9.btf
//
// A struct that is named with three underscores is a variant: the programs ask whether the kernel has it (CO-RE,
// tools/lib/bpf/relo_core.c). Any other field must be there, and so must the tracepoint.
// What the verifier says is not known.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// objects are those that the agent loads on every kernel.
var objects = []string{"internal/probe/kernel_bpfel.o", "internal/probe/runq/kernel_bpfel.o"}

func main() {
	missing := 0
	for _, file := range os.Args[1:] {
		kernel, err := btf.LoadSpec(file)
		if err != nil {
			fail(fmt.Errorf("%s: %w", file, err))
		}
		fmt.Println(file)
		for _, object := range objects {
			programs, err := ebpf.LoadCollectionSpec(object)
			if err != nil {
				fail(err)
			}
			n, err := check(os.Stdout, object, programs, kernel)
			if err != nil {
				fail(err)
			}
			missing += n
		}
	}
	switch {
	case len(os.Args) < 2:
		fail(errors.New("no file; hint: go run ./test/vm/relocate /sys/kernel/btf/vmlinux"))
	case missing > 0:
		fail(fmt.Errorf("%d programs lack something", missing))
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "relocate: error:", err)
	os.Exit(1)
}

// check prints a line for each program, and says how many lack something.
func check(out io.Writer, object string, programs *ebpf.CollectionSpec, kernel *btf.Spec) (int, error) {
	names := make([]string, 0, len(programs.Programs))
	for name := range programs.Programs {
		names = append(names, name)
	}
	slices.Sort(names)
	lack := 0
	for _, name := range names {
		p := programs.Programs[name]
		absent, variants, err := fieldsOf(p, kernel)
		if err != nil {
			return 0, fmt.Errorf("%s, %s: %w", object, name, err)
		}
		if !attaches(p, kernel) {
			absent = append(absent, "tracepoint "+p.AttachTo)
		}
		said := "ok"
		if len(absent) > 0 {
			said = "lacks " + strings.Join(absent, ", ")
			lack++
		}
		fmt.Fprintf(out, "  %-32s %-28s %s; variants: %s\n", object, name, said, strings.Join(variants, " "))
	}
	return lack, nil
}

// fieldsOf says which fields a program needs that the kernel lacks, and which variants the kernel has.
func fieldsOf(p *ebpf.ProgramSpec, kernel *btf.Spec) (absent, variants []string, err error) {
	for i := range p.Instructions {
		r := btf.CORERelocationMetadata(&p.Instructions[i])
		if r == nil {
			continue
		}
		fixups, err := btf.CORERelocate([]*btf.CORERelocation{r}, []*btf.Spec{kernel}, p.ByteOrder, nil)
		if err != nil {
			return nil, nil, err
		}
		what, found := r.String(), !strings.Contains(fixups[0].String(), "poison")
		name, optional := variant(what)
		switch {
		case !found && !optional:
			absent = append(absent, what)
		case found && optional && strings.HasPrefix(fixups[0].String(), "byte_off"):
			variants = append(variants, name)
		}
	}
	for _, list := range []*[]string{&absent, &variants} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return absent, variants, nil
}

// variant takes the name of a variant out of the text of a relocation.
func variant(relocation string) (name string, ok bool) {
	_, rest, _ := strings.Cut(relocation, `"`)
	name, _, _ = strings.Cut(rest, `"`)
	return name, strings.Contains(name, "___")
}

// attaches says whether the kernel has the tracepoint of a program.
func attaches(p *ebpf.ProgramSpec, kernel *btf.Spec) bool {
	if p.AttachType != ebpf.AttachTraceRawTp {
		return true
	}
	_, err := kernel.AnyTypesByName("btf_trace_" + p.AttachTo)
	return err == nil
}
