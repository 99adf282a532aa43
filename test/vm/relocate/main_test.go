package main

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// TestKernelWithoutAnything: each program lacks its tracepoint and the fields that it needs,
// and no variant is asked for.
func TestKernelWithoutAnything(t *testing.T) {
	kernel := specOf(t, &btf.Int{Name: "int", Size: 4})
	programs, err := ebpf.LoadCollectionSpec("../../../internal/probe/kernel_bpfel.o")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	lack, err := check(&out, "probe", programs, kernel)
	if err != nil {
		t.Fatal(err)
	}
	if lack != len(programs.Programs) {
		t.Errorf("%d of %d programs lack something:\n%s", lack, len(programs.Programs), &out)
	}
	for _, want := range []string{"tracepoint sched_switch", `"cfs_rq"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not said to be absent:\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "___") {
		t.Errorf("a variant is said to be there, or to be needed:\n%s", &out)
	}
}

// specOf is the type information of a kernel with these types.
func specOf(t *testing.T, types ...btf.Type) *btf.Spec {
	t.Helper()
	b, err := btf.NewBuilder(types, nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := b.Marshal(nil, &btf.MarshalOptions{Order: binary.LittleEndian})
	if err != nil {
		t.Fatal(err)
	}
	kernel, err := btf.LoadSpecFromReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return kernel
}
