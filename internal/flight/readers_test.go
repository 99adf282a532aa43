package flight

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cgrouptest"
)

// otherReaders prints sums that DuckDB and pyarrow make of a file, and the schema's version.
const otherReaders = `
import json, sys
import duckdb, pyarrow.parquet as pq
con = duckdb.connect()
one = con.execute("""SELECT count(*), sum(used_us)::BIGINT, sum(list_sum(used_10us))::BIGINT, sum(len(throttled_ms))::BIGINT,
  sum(list_sum(throttled_ms))::BIGINT, sum(list_sum(refill_at))::BIGINT, sum(list_sum(quota_us))::BIGINT, count(DISTINCT container_id),
  min(epoch_ms(minute))::BIGINT FROM read_parquet(?)""", [sys.argv[1]]).fetchone()
f = pq.ParquetFile(sys.argv[1])
t = f.read().to_pydict()
total = lambda name: int(sum(sum(x) for x in t[name]))
two = (len(t["cgroup"]), sum(t["used_us"]), total("used_10us"), sum(len(x) for x in t["throttled_ms"]), total("throttled_ms"),
  total("refill_at"), total("quota_us"), len(set(t["container_id"])), min(int(x.timestamp() * 1000) for x in t["minute"]))
print(json.dumps({"duckdb": one, "pyarrow": two, "schema": f.metadata.metadata[b"plimsoll.schema"].decode()}))
`

// TestOtherReaders: DuckDB and pyarrow read what this package writes, and see the same.
func TestOtherReaders(t *testing.T) {
	python := os.Getenv("PLIMSOLL_PYTHON")
	if python == "" {
		cgrouptest.Elsewhere(t, "make bench-record", "PLIMSOLL_PYTHON names no Python with duckdb and pyarrow")
	}
	b := sampleBatch()
	file := filepath.Join(t.TempDir(), "record.parquet")
	if err := os.WriteFile(file, encoded(t, b), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "-c", otherReaders, file)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		DuckDB, Pyarrow []int64
		Schema          string
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	want := sums(b)
	if diff := cmp.Diff(want, got.DuckDB); diff != "" {
		t.Errorf("DuckDB (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, got.Pyarrow); diff != "" || got.Schema != Schema {
		t.Errorf("pyarrow, schema %q (-want +got):\n%s", got.Schema, diff)
	}
}

// sums are those of otherReaders.
func sums(b Batch) []int64 {
	total := func(list []int32) (n int64) {
		for _, x := range list {
			n += int64(x)
		}
		return n
	}
	whole := func(list []float32) (n int64) {
		for _, x := range list {
			n += int64(x)
		}
		return n
	}
	out, ids := make([]int64, 9), map[string]bool{}
	out[0], out[8] = int64(len(b.Rows)), b.Rows[0].Start
	for i := range b.Rows {
		m := &b.Rows[i]
		ids[m.ContainerID] = true
		out[1] += m.UsedUs
		out[2] += whole(m.Used)
		out[3] += int64(len(m.ThrottledMs))
		out[4] += total(m.ThrottledMs)
		out[5] += total(m.RefillAt)
		for _, q := range m.QuotaUs {
			out[6] += q
		}
	}
	out[7] = int64(len(ids))
	return out
}
