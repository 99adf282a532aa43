package frame

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"plimsoll/internal/experiment"
)

const (
	apacheFile    = 1 << 20 // as /static/file.1m.test in the published experiment
	apacheBinary  = "/usr/sbin/apache2"
	apacheModules = "/usr/lib/apache2/modules"
)

// Apache looks for Debian's Apache.
func Apache() (*Site, error) {
	for _, name := range []string{apacheBinary, filepath.Join(apacheModules, "mod_deflate.so")} {
		if _, err := os.Stat(name); err != nil {
			return nil, experiment.WithHint(fmt.Errorf("Debian's Apache is not installed: %s is not there", name), "run `make setup`, which installs apache2")
		}
	}
	return &Site{Name: "Apache", Size: apacheFile, Configuration: ApacheConfiguration, Command: func(dir, _ string) []string {
		return []string{apacheBinary, "-f", filepath.Join(dir, SiteConfig), "-D", "FOREGROUND"}
	}}, nil
}

// ApacheConfiguration compresses each answer anew, keeps connections open, and has threads enough that none waits for one.
func ApacheConfiguration(dir, address string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("ServerRoot %q", dir)
	line("ServerName 127.0.0.1")
	line("DefaultRuntimeDir %q", dir)
	line("PidFile %q", filepath.Join(dir, "apache.pid"))
	line("ErrorLog %q", filepath.Join(dir, SiteLog))
	line("Listen %s", address)
	for _, m := range []string{"mpm_event", "authz_core", "mime", "filter", "deflate"} {
		line("LoadModule %s_module %s", m, filepath.Join(apacheModules, "mod_"+m+".so"))
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
