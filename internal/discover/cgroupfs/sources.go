package cgroupfs

import (
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/config"
	"plimsoll/internal/cpu"
	"plimsoll/internal/workload"
)

// Sources are the places where systemd and the container engines keep the configuration of a container: its name and
// its declared limit. A pattern has {id} in the place of the container's id, and * in the place of a namespace.
type Sources struct {
	Docker  []string // directories with ID/hostconfig.json and ID/config.v2.json
	Runc    []string // patterns of runc's state.json
	Bundles []string // patterns of the OCI config.json
	Storage []string // containers.json of containers/storage (Podman, CRI-O)
	Systemd *Systemd // nil where systemd does not run
}

// OfHost discovers the containers of this host as a configuration says, and looks up what their runtimes say of them.
// root is where the control groups are mounted; "" watches nothing.
func OfHost(tree *cgroup.Tree, root string, file *config.File, log *slog.Logger) (*Scanner, error) {
	return New(tree, root, Options{Resolver: file, Sources: HostSources("/"), Log: log, Now: time.Now})
}

// HostSources are the places of an ordinary installation below root: "/", or where the host's root is mounted.
func HostSources(root string) Sources {
	at := func(names ...string) []string {
		for i, name := range names {
			names[i] = filepath.Join(root, name)
		}
		return names
	}
	s := Sources{
		Docker: dockerDirs(root),
		Runc: at("run/docker/runtime-runc/*/{id}/state.json", // dockerd's shim
			"run/containerd/runc/*/{id}/state.json", // containerd's shim, also k3s's
			"run/runc/{id}/state.json"),             // CRI-O and Podman with runc, runc itself
		Bundles: at("run/containerd/io.containerd.runtime.v2.task/*/{id}/config.json",
			"run/k3s/containerd/io.containerd.runtime.v2.task/*/{id}/config.json",
			"run/docker/containerd/daemon/io.containerd.runtime.v2.task/*/{id}/config.json",
			"run/containers/storage/overlay-containers/{id}/userdata/config.json",
			"var/lib/containers/storage/overlay-containers/{id}/userdata/config.json"),
		Storage: at("var/lib/containers/storage/overlay-containers/containers.json"),
	}
	if _, err := os.Stat("/run/systemd/system"); err == nil && root == "/" {
		s.Systemd = NewSystemd()
	}
	return s
}

// dockerDirs are where dockerd keeps its containers: below the data-root of its configuration, which an administrator
// may have moved to another disk, that of the snap, and the default.
func dockerDirs(root string) []string {
	roots := []string{"var/lib/docker", "var/snap/docker/common/var-lib-docker"}
	if dir, err := readFile(filepath.Join(root, "etc/docker/daemon.json"), parseDataRoot); err == nil &&
		filepath.IsAbs(dir) {
		roots = append([]string{dir}, roots...)
	}
	dirs := make([]string, len(roots))
	for i, dir := range roots {
		dirs[i] = filepath.Join(root, dir, "containers")
	}
	return dirs
}

// facts are what the sources say about one group.
type facts struct {
	name     string // of the container; "" when not known
	pod      string // name of its pod
	runtime  string // "": the one guessed from the path
	sandbox  bool   // of a pod
	declared *workload.Declared

	unanswered bool // systemd did not answer the last question: it is asked again

	file  string // that the limit was read from, if its owner keeps it up to date
	stamp stamp
}

// lookUp reads the facts about a group from the sources. now is its limit in the kernel; old are the former facts.
func (s Sources) lookUp(at Place, group string, now cpu.Bandwidth, old facts) facts {
	switch at.Kind {
	case Container:
		if old.file != "" && stampOf(old.file) == old.stamp {
			return old
		}
		return s.container(at, group, now, old)
	case Unit, Pod:
		old.declared, old.unanswered = s.unit(at, group, now, old.declared)
	}
	return old
}

// container reads the engine's files first: the engine has a change before systemd and the kernel, and systemd rounds.
func (s Sources) container(at Place, group string, now cpu.Bandwidth, old facts) facts {
	if strings.ContainsAny(at.ID, `*?[\`) {
		return old // not an id: it would be read as a pattern
	}
	var f facts
	s.docker(&f, at.ID)
	s.runc(&f, at.ID)
	if f.name == "" {
		f.name, f.pod, f.sandbox = old.name, old.pod, old.sandbox
	}
	if f.name == "" {
		f.name, f.pod, f.sandbox = s.bundle(at.ID)
	}
	if f.name == "" {
		f.name = s.storageName(at.ID)
	}
	if f.declared == nil { // the last answer stays valid until a source has another
		f.declared, f.unanswered = s.unit(at, group, now, old.declared)
	}
	return f
}

func (s Sources) docker(f *facts, id string) {
	for _, dir := range s.Docker {
		file := filepath.Join(dir, id, "hostconfig.json")
		stamp := stampOf(file)
		limit, err := readFile(file, parseHostConfig)
		if err != nil {
			continue
		}
		f.runtime, f.file, f.stamp = docker, file, stamp
		f.declared = &workload.Declared{Bandwidth: limit, Source: "docker hostconfig.json"}
		f.name, _ = readFile(filepath.Join(dir, id, "config.v2.json"), parseDockerName)
		return
	}
}

func (s Sources) runc(f *facts, id string) {
	for _, file := range find(s.Runc, id) {
		if f.declared != nil {
			return
		}
		stamp := stampOf(file)
		if limit, err := readFile(file, parseRuncState); err == nil {
			f.file, f.stamp = file, stamp
			f.declared = &workload.Declared{Bandwidth: limit, Source: "runc state"}
		}
	}
}

// bundle reads the names in the OCI configuration. The limit in it is the one at the container's creation, which nobody
// updates when the limit is changed later: it declares nothing.
func (s Sources) bundle(id string) (name, pod string, sandbox bool) {
	for _, file := range find(s.Bundles, id) {
		if spec, err := readFile(file, parseSpec); err == nil {
			name, pod = spec.names()
			return name, pod, spec.sandbox()
		}
	}
	return "", "", false
}

func (s Sources) storageName(id string) string {
	for _, file := range s.Storage {
		names, err := readFile(file, parseStorage)
		if err == nil && names[id] != "" {
			return names[id]
		}
	}
	return ""
}

// unit asks systemd. While systemd does not answer, its last answer stays valid.
func (s Sources) unit(at Place, group string, now cpu.Bandwidth,
	old *workload.Declared) (declared *workload.Declared, unanswered bool) {
	name := path.Base(group)
	if s.Systemd == nil || !isUnit(name) {
		return old, false
	}
	limit, known, err := s.Systemd.Limit(group)
	switch {
	case err != nil:
		return old, true
	case !known:
		return nil, false
	}
	rounded := at.Kind != Unit
	if rounded {
		limit = unrounded(limit, now, old)
	}
	return &workload.Declared{Bandwidth: limit, Source: "systemd CPUQuota= of " + name, Rounded: rounded}, false
}

// find lists the files that match the patterns for an id.
func find(patterns []string, id string) []string {
	var files []string
	for _, pattern := range patterns {
		found, _ := filepath.Glob(strings.ReplaceAll(pattern, "{id}", id))
		files = append(files, found...)
	}
	return files
}

// stamp identifies a version of a file: the engines write a new file and rename it.
type stamp struct {
	size, time int64
}

func stampOf(file string) stamp {
	info, err := os.Stat(file)
	if err != nil {
		return stamp{}
	}
	return stamp{info.Size(), info.ModTime().UnixNano()}
}
