package trial

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"plimsoll/internal/golden"
	"plimsoll/internal/sim"
)

// The record of decisions: what the agent writes on the random machines of TestManySeeds. A change of the code
// that must change no decision can show that it does not. Each line of testdata/decisions.txt has a seed, the number of
// writes, and a digest of them: for each file the times and the values, in order. Texts, and the order between files,
// are not in it. DIR gets a file for each seed, to be compared with that of another commit.
//
//	UPDATE_GOLDEN=1 go test ./internal/trial -run TestManySeeds  # writes the record anew
//	go test ./internal/trial -run TestManySeeds -decisions DIR                # writes out all writes
var decisions = flag.String("decisions", "", "a directory for the writes of each machine")

const recordFile = "testdata/decisions.txt"

// record is a line for each seed.
type record struct {
	wanted []string
	got    bytes.Buffer
}

func recorded(t *testing.T) *record {
	t.Helper()
	data, err := os.ReadFile(recordFile)
	if err != nil && !golden.Updating() {
		t.Fatal(err)
	}
	r := &record{}
	for line := range bytes.Lines(data) {
		r.wanted = append(r.wanted, string(line))
	}
	t.Cleanup(func() {
		if golden.Updating() && !t.Failed() {
			if err := os.WriteFile(recordFile, r.got.Bytes(), 0o600); err != nil {
				t.Error(err)
			}
		}
	})
	return r
}

// compare compares a machine's writes with the record.
func (r *record) compare(t *testing.T, seed uint64, w *World) {
	t.Helper()
	text := written(w)
	line := fmt.Sprintf("%d %d %x\n", seed, bytes.Count(text, []byte("\n")), sha256.Sum256(text))
	r.got.WriteString(line)
	if *decisions != "" {
		if err := os.WriteFile(filepath.Join(*decisions, fmt.Sprint(seed)), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if !golden.Updating() && seed < uint64(len(r.wanted)) && r.wanted[seed] != line {
		t.Errorf("other decisions: %s, on record: %s; hint: write them out with -decisions, here and at the last "+
			"commit", line, r.wanted[seed])
	}
}

// written lists what was written to each file.
func written(w *World) []byte {
	list := slices.Clone(w.Kernel.Writes())
	slices.SortStableFunc(list, func(a, b sim.Write) int { return cmp.Compare(name(a), name(b)) })
	var text bytes.Buffer
	for _, x := range list {
		fmt.Fprintf(&text, "%s %v %q\n", name(x), x.At.Sub(w.start()), x.Data)
	}
	return text.Bytes()
}

func name(w sim.Write) string { return w.Group.Path + "/" + w.Name }
