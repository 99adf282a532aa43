package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"plimsoll/internal/load"
	"plimsoll/lab/experiment"
)

const (
	fileSize = 1 << 20 // as /static/file.1m.test in the published experiment
	modules  = "/usr/lib/apache2/modules"
	patience = 10 * time.Second
)

// apache is an Apache of its own: its own configuration, port, document and log; the system's is not touched.
type apache struct {
	binary string
	dir    string
	url    string
	child  *experiment.Child
}

// newApache looks for Debian's Apache.
func newApache() (*apache, error) {
	for _, name := range []string{"/usr/sbin/apache2", filepath.Join(modules, "mod_deflate.so")} {
		if _, err := os.Stat(name); err != nil {
			return nil, missing{fmt.Errorf("Debian's Apache is not installed: %s is not there", name)}
		}
	}
	return &apache{binary: "/usr/sbin/apache2"}, nil
}

type missing struct{ error }

// Hint is the advice.
func (missing) Hint() string { return "run `make setup`, which installs apache2" }

// Start starts Apache behind a gate, so that all its processes are born in the group.
func (a *apache) Start(enter func(pid int) error) (err error) {
	if a.dir, err = experiment.TempDir("apache"); err != nil {
		return err
	}
	address, err := experiment.FreeAddress()
	if err != nil {
		return fmt.Errorf("start Apache: %w", err)
	}
	if err := a.prepare(address); err != nil {
		return fmt.Errorf("start Apache: %w", err)
	}
	a.url = "http://" + address + "/file.txt"
	cmd := experiment.Gated(a.binary, "-f", a.file("apache.conf"), "-D", "FOREGROUND")
	if a.child, err = experiment.Launch(cmd, enter); err != nil {
		return err
	}
	return a.await()
}

func (a *apache) file(name string) string { return filepath.Join(a.dir, name) }

// prepare writes the configuration and the document, for Apache's user to read.
func (a *apache) prepare(address string) error {
	if err := os.Chmod(a.dir, 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(a.file("www"), 0o755); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(a.file("www/file.txt"), load.Text(1, fileSize), 0o644),
		os.WriteFile(a.file("apache.conf"), []byte(configuration(a.dir, address)), 0o644))
}

// configuration compresses each answer anew, keeps connections open, and has threads enough that none waits for one.
func configuration(dir, address string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("ServerRoot %q", dir)
	line("ServerName 127.0.0.1")
	line("DefaultRuntimeDir %q", dir)
	line("PidFile %q", filepath.Join(dir, "apache.pid"))
	line("ErrorLog %q", filepath.Join(dir, "error.log"))
	line("Listen %s", address)
	for _, m := range []string{"mpm_event", "authz_core", "mime", "filter", "deflate"} {
		line("LoadModule %s_module %s", m, filepath.Join(modules, "mod_"+m+".so"))
	}
	line("User www-data")
	line("Group www-data")
	line("StartServers 1")
	line("ServerLimit 1")
	line("ThreadsPerChild 64")
	line("MaxRequestWorkers 64")
	line("KeepAlive On")
	line("MaxKeepAliveRequests 0")
	line("KeepAliveTimeout 600")
	line("TypesConfig /dev/null")
	line("AddType text/plain .txt")
	line("AddOutputFilterByType DEFLATE text/plain")
	line("DocumentRoot %q", filepath.Join(dir, "www"))
	line("<Directory %q>", filepath.Join(dir, "www"))
	line("  Require all granted")
	line("</Directory>")
	return b.String()
}

// await waits until Apache answers.
func (a *apache) await() error {
	if err := a.child.AwaitHTTP(a.url, patience); err != nil {
		log, _ := os.ReadFile(a.file("error.log"))
		return fmt.Errorf("Apache does not answer: %w\n%s", err, log)
	}
	return nil
}

// URL is the one document.
func (a *apache) URL(int) string { return a.url }

// Stop ends Apache and removes its files.
func (a *apache) Stop() error {
	var err error
	if a.child != nil {
		err = a.child.Stop(patience)
	}
	return errors.Join(err, os.RemoveAll(a.dir))
}
