package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/discover/cgroupfs"
	"plimsoll/internal/host"
	"plimsoll/internal/journal"
	"plimsoll/internal/logqueue"
	"plimsoll/internal/node"
	"plimsoll/internal/receipt/disk"
)

// TestRunTakesOverReceipts: an agent goes on with the experiments in its state directory, of the boot of its journal,
// and shows as a problem that it cannot keep them.
func TestRunTakesOverReceipts(t *testing.T) {
	n := newNode(t)
	g := &globals{Dirs: n.dirs()}
	j, err := journal.Open(n.state, "this-boot", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(n.state, disk.FileName)
	for boot, groups := range map[string]int{"this-boot": 1, "another": 0} {
		text := fmt.Sprintf(
			`{"version":1,"boot":%q,"node":{"since":"2026-11-27T00:00:00Z"},"groups":[{"cgroup":"/pods/web","inode":7,`+
				`"strategy":{"policy":"auto","receipts":0.1},"since":"2026-11-27T00:00:00Z","withdrawn":"harms the container"}]}`, boot)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		to := slog.New(slog.NewTextHandler(&log, nil))
		file, err := source{policy: "none"}.load()
		if err != nil {
			t.Fatal(err)
		}
		dir, tree, err := g.OpenTree()
		if err != nil {
			t.Fatal(err)
		}
		defer dir.Close()
		found, err := cgroupfs.OfHost(tree, "", file, to)
		if err != nil {
			t.Fatal(err)
		}
		a, err := newAgent(g, dir, tree, found, file, host.Throttles{}, to)
		if err != nil {
			t.Fatal(err)
		}
		kept := g.openReceipts(&node.Node{Journal: j}, a, to)
		if k := a.KeptReceipts(); len(k.Groups) != groups {
			t.Errorf("%s: %+v; log %s", boot, k, &log)
		}
		if groups == 0 {
			continue
		}
		if err := os.Mkdir(path+".new", 0o700); err != nil {
			t.Fatal(err)
		}
		over, end := context.WithCancel(t.Context())
		end()
		if err := kept.Run(over); err != nil {
			t.Fatal(err)
		}
		_, lines := agentLog(to, logqueue.New(), found)
		r := reporter{Agent: a, receipts: kept, lines: lines, installation: "a/b"}
		if problems := strings.Join(r.Status().Problems, "\n"); !strings.Contains(problems, "receipts are not kept") {
			t.Errorf("problems %q", problems)
		}
		if of := r.Status().Installation; of != "a/b" {
			t.Errorf("the installation is %q", of)
		}
	}
}
