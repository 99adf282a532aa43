package probe

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/cilium/ebpf/btf"

	"plimsoll/internal/probe/probetest"
)

func TestDecodePeriod(t *testing.T) {
	raw := make([]byte, 0, periodSize)
	raw = binary.LittleEndian.AppendUint64(raw, 7)
	raw = binary.LittleEndian.AppendUint64(raw, uint64(3*time.Hour))
	for _, us := range []uint32{60_123, 50_000, math.MaxUint32} {
		raw = binary.LittleEndian.AppendUint32(raw, us)
	}
	raw = binary.LittleEndian.AppendUint16(raw, 5)
	raw = binary.LittleEndian.AppendUint16(raw, 2)
	want := Period{Group: 7, End: 3 * time.Hour, Used: 60_123 * time.Microsecond, Quota: 50 * time.Millisecond,
		Lost: math.MaxUint32 * time.Microsecond, Throttles: 5, Count: 2}
	if got, err := decodePeriod(raw); got != want || err != nil {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	for name, change := range map[string]func(b []byte) []byte{
		"short":      func(b []byte) []byte { return b[:periodSize-1] },
		"long":       func(b []byte) []byte { return append(b, 0) },
		"no period":  func(b []byte) []byte { b[30], b[31] = 0, 0; return b },
		"end of age": func(b []byte) []byte { b[15] = 0xff; return b },
	} {
		if got, err := decodePeriod(change(append([]byte{}, raw...))); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

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
	got, by := probetest.Memory(spec, cpus, groups)
	t.Logf("%.1f MiB: %v", float64(got)/(1<<20), by)
	if got > most {
		t.Errorf("%d bytes, want %d at most", got, most)
	}
}
