package frame

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"plimsoll/internal/experiment"
)

// VM is a virtual machine of test/vm that an experiment is run in. Its CPUs are emulated: shares of CPU time are what
// they are, and response times are not those of any machine.
type VM struct {
	Kernel string // a series of test/vm/kernels.sh
	Cgroup string // v1, v2
	CPUs   int
	// they run beside each other, and not in turns: timers fire in time. It may crash, and is begun anew then
	AtOnce bool
	// Its time is counted in instructions of so many ns, a power of two: what else the host does changes nothing of
	// what is measured. 0: it is not.
	Instruction time.Duration
	Memory      int           // MiB; 0: the default
	Span        time.Duration // allowed in all, once it has booted
	// Programs of this host that the script needs, on its path. A file that is named by its path, such as a module,
	// has it there.
	Programs []string
}

// Run builds a package of this project for the machine and runs the script there, beside the program, which has the
// name of the package, and the files. What the script writes to its console is written to stdout.
func (v VM) Run(ctx context.Context, pkg, script string, files ...string) error {
	return With(ctx, "vm", &Settings{Groups: NoGroups}, say, func(b *Bench) {
		runner := Must(filepath.Abs("test/vm/run.sh"))
		_, err := os.Stat(runner)
		Check(experiment.WithHint(err, "run this in the project's folder, which has the virtual machines in test/vm"))
		name := filepath.Base(pkg)
		dir := b.Dir(name + "-vm")
		program, main := filepath.Join(dir, name), filepath.Join(dir, name+".sh")
		build := exec.CommandContext(ctx, "go", "build", "-o", program, pkg)
		build.Env = append(os.Environ(), "CGO_ENABLED=0") // the guest has no C library
		if out, err := build.CombinedOutput(); err != nil {
			Check(fmt.Errorf("build %s for the virtual machine: %w\n%s", pkg, err, out))
		}
		if len(v.Programs) > 0 {
			files = append(files, filepath.Join(dir, root))
			script = useRoot + script
		}
		for _, name := range v.Programs {
			In("copy "+name+" for the virtual machine", func() { Check(install(ctx, name, filepath.Join(dir, root))) })
		}
		Check(os.WriteFile(main, []byte(script+"\n"), 0o644))
		Check(v.boot(ctx, append([]string{runner, v.Kernel, v.Cgroup, main, program}, files...)))
	})
}

func (v VM) boot(ctx context.Context, line []string) error {
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Env = append(os.Environ(), v.environment()...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	// A group of its own: Ctrl-C reaches the experiment alone,
	// which then has the script end the machine and remove its files.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the virtual machine: %w", errors.Join(context.Cause(ctx), err))
	}
	return nil
}

// environment is that of test/vm/boot.sh.
func (v VM) environment() []string {
	env := []string{"SMP=" + strconv.Itoa(v.CPUs), fmt.Sprintf("SECONDS_MAX=%.0f", v.Span.Seconds())}
	if v.AtOnce {
		env = append(env, "TCG=multi", "TRIES=6")
	}
	if v.Instruction > 0 {
		env = append(env, fmt.Sprintf("ICOUNT=%d", bits.TrailingZeros64(uint64(v.Instruction))))
	}
	if v.Memory > 0 {
		env = append(env, "MEM="+strconv.Itoa(v.Memory))
	}
	return env
}

const (
	root   = "root"                 // the folder of programs and their libraries
	loader = "ld-linux-x86-64.so.2" // of dynamic programs; the guests are x86-64
	// useRoot has the guest find both, and know the users that they run as.
	useRoot = "mkdir -p /lib64 /etc; ln -s $PWD/" + root + "/lib/" + loader + " /lib64/" + loader + "\n" +
		"export PATH=$PWD/" + root + "/bin:$PATH LD_LIBRARY_PATH=$PWD/" + root + "/lib\n" +
		"echo 'root:x:0:0::/:/bin/sh' >/etc/passwd; echo 'www-data:x:33:33::/:/bin/sh' >>/etc/passwd\n" +
		"echo 'root:x:0:' >/etc/group; echo 'www-data:x:33:' >>/etc/group\n" +
		"[ ! -d $PWD/" + root + "/paths ] || cp -r $PWD/" + root + "/paths/. /\n"
)

// copyProgram copies a program and the libraries that it is linked with: of each line of ldd the first path.
const copyProgram = `mkdir -p "$2/$3" "$2/lib"; cp -L "$1" "$2/$3"; ldd "$1" >"$2/ldd"
sed -n 's|^[^/]*\(/[^ ]*\).*|\1|p' "$2/ldd" | xargs cp -L -t "$2/lib"`

func install(ctx context.Context, name, root string) error {
	binary, folder := name, "paths"+filepath.Dir(name)
	if !filepath.IsAbs(name) {
		var err error
		if binary, err = experiment.Program(name); err != nil {
			return err
		}
		folder = "bin"
	}
	if said, err := exec.CommandContext(ctx, "sh", "-ec", copyProgram, "sh", binary, root,
		folder).CombinedOutput(); err != nil {
		return fmt.Errorf("copy %s and its libraries: %w\n%s", binary, err, said)
	}
	return nil
}
