package probe

import (
	"testing"

	"github.com/cilium/ebpf/btf"

	"plimsoll/internal/probe/programs"
)

// The programs' maps on a machine of 512 CPUs with 3,000 groups.
func TestMemoryOnManyCPUs(t *testing.T) {
	const cpus, groups, most = 512, 3000, 8 << 20
	spec, err := loadKernel()
	if err != nil {
		t.Fatal(err)
	}
	o := Options{types: btf.NewCache()}
	if err := o.apply(spec); err != nil {
		t.Fatal(err)
	}
	spec.Maps[kernelMapQueues].MaxEntries = queues(8192, cpus)
	got, by := programs.Memory(spec, cpus, groups)
	t.Logf("%.1f MiB: %v", float64(got)/(1<<20), by)
	if got > most {
		t.Errorf("%d bytes, want %d at most", got, most)
	}
}
