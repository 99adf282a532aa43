package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"plimsoll/lab/experiment"
)

const (
	guestMemory  = 2048 // MiB: the programs' libraries are large, and the guest has no disk
	bootPatience = 4 * time.Minute
	guestSlow    = 30 * time.Second // what a slot takes beside its load
)

// boot runs the experiment in a virtual machine with another kernel.
func boot(ctx context.Context, s settings, kernel string) (err error) {
	dir, err := experiment.TempDir("colocation-root")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	root := filepath.Join(dir, "root")
	for _, name := range []string{"nginx", "ffmpeg"} {
		if err := install(ctx, name, root); err != nil {
			return fmt.Errorf("copy %s for the virtual machine: %w", name, err)
		}
	}
	slots := time.Duration(s.rounds * len(allRows()))
	vm := experiment.VM{Kernel: kernel, Cgroup: "v2", CPUs: runtime.NumCPU(), Memory: guestMemory,
		Span: bootPatience + slots*(s.perRow/time.Duration(s.rounds)+guestSlow)}
	return vm.Run(ctx, "./lab/colocation", script(s), root, s.plimsoll)
}

// script is what the guest runs. The programs find their libraries where they were put.
func script(s settings) string {
	names := make([]string, len(s.rows))
	for i, r := range s.rows {
		names[i] = string(r)
	}
	return strings.Join([]string{
		"mkdir -p /lib64 /etc /var/log/nginx /var/lib/nginx",
		"ln -s $PWD/root/lib/" + loader + " /lib64/" + loader,
		"echo 'root:x:0:0::/:/bin/sh' >/etc/passwd; echo 'www-data:x:33:33::/:/bin/sh' >>/etc/passwd",
		"echo 'root:x:0:' >/etc/group; echo 'www-data:x:33:' >>/etc/group",
		"export PATH=$PWD/root/bin:$PATH LD_LIBRARY_PATH=$PWD/root/lib",
		fmt.Sprintf("./colocation -emulated -plimsoll ./plimsoll -seconds %g -rounds %d -rate %g -seed %d -json=%v -rows '%s'",
			s.perRow.Seconds(), s.rounds, s.rate, s.seed, s.json, strings.Join(names, ",")),
	}, "\n") + "\n"
}

const loader = "ld-linux-x86-64.so.2" // of dynamic programs; the guests are x86-64

// install copies a program and the libraries that it is linked with.
func install(ctx context.Context, name, root string) error {
	binary, err := experiment.Program(name)
	if err != nil {
		return err
	}
	listed, err := exec.CommandContext(ctx, "ldd", binary).Output()
	if err != nil {
		return fmt.Errorf("ldd %s: %w", binary, err)
	}
	for _, dir := range []string{"bin", "lib"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return err
		}
	}
	if err := copyFile(binary, filepath.Join(root, "bin", name)); err != nil {
		return err
	}
	for _, file := range libraries(string(listed)) {
		if err := copyFile(file, filepath.Join(root, "lib", filepath.Base(file))); err != nil {
			return err
		}
	}
	return nil
}

// libraries are the files that ldd names: each is the first word of its line that is a path.
func libraries(listed string) []string {
	var files []string
	for line := range strings.Lines(listed) {
		for _, word := range strings.Fields(line) {
			if strings.HasPrefix(word, "/") {
				files = append(files, word)
				break
			}
		}
	}
	return files
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}
