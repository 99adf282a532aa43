package frame

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"plimsoll/internal/experiment"
)

const (
	root   = "root"                 // the folder of programs and their libraries
	loader = "ld-linux-x86-64.so.2" // of dynamic programs; the guests are x86-64
	// useRoot has the guest find both, and know the users that they run as.
	useRoot = "mkdir -p /lib64 /etc; ln -s $PWD/" + root + "/lib/" + loader + " /lib64/" + loader + "\n" +
		"export PATH=$PWD/" + root + "/bin:$PATH LD_LIBRARY_PATH=$PWD/" + root + "/lib\n" +
		"echo 'root:x:0:0::/:/bin/sh' >/etc/passwd; echo 'www-data:x:33:33::/:/bin/sh' >>/etc/passwd\n" +
		"echo 'root:x:0:' >/etc/group; echo 'www-data:x:33:' >>/etc/group\n"
)

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
