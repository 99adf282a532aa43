package scx

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// opsType is the kernel's table of a scheduler's operations.
const opsType = "sched_ext_ops"

// Object is a compiled scheduler, ours or any other.
type Object struct {
	Name string // what the kernel shows while it is loaded
	spec *ebpf.CollectionSpec
	ops  string // the map of its operations
}

// Read reads a compiled scheduler: an ELF file of eBPF programs with one table of operations (.struct_ops.link).
func Read(r io.ReaderAt) (*Object, error) {
	spec, err := ebpf.LoadCollectionSpecFromReader(r)
	if err != nil {
		return nil, fmt.Errorf("read a scheduler: %w", err)
	}
	return newObject(spec)
}

func newObject(spec *ebpf.CollectionSpec) (*Object, error) {
	o := &Object{spec: spec}
	for _, name := range slices.Sorted(maps.Keys(spec.Maps)) {
		m := spec.Maps[name]
		if table, ok := btf.As[*btf.Struct](m.Value); m.Type != ebpf.StructOpsMap || !ok || table.Name != opsType {
			continue
		}
		if o.ops != "" {
			return nil, fmt.Errorf("read a scheduler: two tables of operations, %s and %s", o.ops, name)
		}
		o.ops = name
	}
	if o.ops == "" {
		return nil, errors.New("read a scheduler: no table of operations (SEC(\".struct_ops.link\") struct " +
			"sched_ext_ops)")
	}
	value, at, err := o.member("name")
	if err != nil {
		return nil, err
	}
	o.Name = string(value[at:])
	if end := bytes.IndexByte(value[at:], 0); end >= 0 {
		o.Name = string(value[at : at+end])
	}
	if o.Name == "" {
		return nil, errors.New("read a scheduler: it has no name")
	}
	return o, nil
}

// member is the table's bytes, and where a member stands in them.
func (o *Object) member(name string) ([]byte, int, error) {
	m := o.spec.Maps[o.ops]
	table, _ := btf.As[*btf.Struct](m.Value)
	value, ok := m.Contents[0].Value.([]byte)
	if !ok {
		return nil, 0, fmt.Errorf("read a scheduler: the table %s has no contents", o.ops)
	}
	i := slices.IndexFunc(table.Members, func(m btf.Member) bool { return m.Name == name })
	if i < 0 || int(table.Members[i].Offset.Bytes()) >= len(value) {
		return nil, 0, fmt.Errorf("read a scheduler: the table %s has no %s", o.ops, name)
	}
	return value, int(table.Members[i].Offset.Bytes()), nil
}

// needs lists the kernel's functions that the programs call, and the operations that they implement. A function whose
// address a program loads is a weak one: the program tests whether the kernel has it.
func (o *Object) needs() (functions, operations []string) {
	called := map[string]bool{}
	for _, p := range o.spec.Programs {
		mine := kfuncs(p.Instructions)
		for i := range p.Instructions {
			if p.Instructions[i].OpCode.IsDWordLoad() {
				delete(mine, p.Instructions[i].Reference())
			}
		}
		maps.Copy(called, mine)
		if member, ok := bytes.CutPrefix([]byte(p.AttachTo), []byte(opsType+":")); ok {
			operations = append(operations, string(member))
		}
	}
	slices.Sort(operations)
	return slices.Sorted(maps.Keys(called)), operations
}

// setWatchdog says after how long a wait of a task the kernel ends the scheduler (timeout_ms).
func (o *Object) setWatchdog(after time.Duration) error {
	value, at, err := o.member("timeout_ms")
	if err != nil {
		return err
	}
	binary.LittleEndian.PutUint32(value[at:], uint32(after/time.Millisecond))
	return nil
}

// Ready is Load after a preflight that found nothing in the way.
func (o *Object) Ready() (*Loaded, error) {
	if found := (Obstacle{Preflight(o)}); found.Any() {
		return nil, found
	}
	return o.Load()
}
