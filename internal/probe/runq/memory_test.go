package runq

import (
	"testing"

	"plimsoll/internal/probe/programs"
)

// The maps on a machine of 512 CPUs. Those of package probe come to 8 MiB at most beside them, 32 MiB together.
func TestMemoryOnManyCPUs(t *testing.T) {
	const cpus, most = 512, 24 << 20
	spec, err := loadKernel()
	if err != nil {
		t.Fatal(err)
	}
	p := &Probe{}
	if err := p.fit(spec, Options{Tasks: defaultTasks}, cpus); err != nil {
		t.Fatal(err)
	}
	got, by := programs.Memory(spec, cpus, defaultGroups)
	t.Logf("%.1f MiB: %v", float64(got)/(1<<20), by)
	if got > most {
		t.Errorf("%d bytes, want %d at most", got, most)
	}
}
