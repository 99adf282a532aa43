package frame

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLibraries(t *testing.T) {
	const listed = "\tlinux-vdso.so.1 (0x00007ffc)\n\tlibz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x00007f0)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f1)\n"
	if diff := cmp.Diff([]string{"/lib/x86_64-linux-gnu/libz.so.1", "/lib64/ld-linux-x86-64.so.2"}, libraries(listed)); diff != "" {
		t.Errorf("libraries (-want +got):\n%s", diff)
	}
}
