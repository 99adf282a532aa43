package cgroupfs

import (
	"strings"

	"plimsoll/internal/workload"
)

// Kind is the kind of the group at a path.
type Kind string

// The kinds.
const (
	Plain     Kind = "plain"     // another directory
	Unit      Kind = "unit"      // a systemd service, slice or scope
	Pod       Kind = "pod"       // contains the containers of one pod
	Container Kind = "container" // one container, whichever engine made it
	Inside    Kind = "inside"    // below a container, or in another system's tree: never managed
)

// Place is what the path of a group says about it.
type Place struct {
	Kind    Kind
	Runtime string // containerd, docker, cri-o, podman, systemd, cgroup; a guess where engines name alike
	ID      string // of the container or the pod; "" otherwise

	branch branch
	opaque bool // what is below belongs to another system
	scope  bool // of a container that crun may have made: its group may be the one in it
	inner  bool // that one
}

// Closed says that no group below the place is managed.
func (p Place) Closed() bool { return p.Kind == Container || p.Kind == Inside || p.opaque }

// branch is a folder that gives meaning to the names below it.
type branch int

const (
	noBranch   branch = iota
	kubeBranch        // kubepods, kubepods/burstable, kubepods/besteffort
	dockerBranch
	libpodBranch
	ctrBranch // a containerd namespace of which the ids are not always hexadecimal
	lxcBranch
)

// The names of Place.Runtime.
const (
	containerd = "containerd"
	docker     = "docker"
	crio       = "cri-o"
	podman     = "podman"
	systemd    = "systemd"
	plainGroup = "cgroup"
	kubernetes = "kubernetes"
)

// split is what Podman puts before the id of a container in its service's own group (--cgroups=split, as with Quadlet).
const split = "libpod-payload"

// prefixes are what the engines put before a container's id in the name of a scope (systemd driver) or a folder.
var prefixes = []struct{ prefix, runtime string }{
	{"cri-containerd", containerd},
	{"crio", crio},
	{"docker", docker},
	{"libpod", podman},
	{split, podman},
	{"nerdctl", containerd},
}

// Classify says what the group at a path is, below the cpu hierarchy (v1) or the root (v2). The outermost container
// wins: what a nested engine made inside it (kind, Docker in Docker) is Inside. The group that crun made in a scope is
// the same container (scope.go).
func Classify(group string) Place {
	at := Place{Kind: Plain, Runtime: plainGroup}
	for i, name := range strings.FieldsFunc(group, func(r rune) bool { return r == '/' }) {
		at = below(at, name, i)
	}
	return at
}

// below classifies the child of a place; depth is the number of groups above it.
func below(parent Place, name string, depth int) Place {
	if parent.scope && name == workload.InScope {
		return Place{Kind: Container, Runtime: parent.Runtime, ID: parent.ID, inner: true}
	}
	if parent.Closed() {
		return Place{Kind: Inside}
	}
	if id, runtime, ok := containerName(name); ok {
		byCrun := (runtime == podman || runtime == crio) && strings.HasSuffix(name, ".scope")
		return Place{Kind: Container, Runtime: runtime, ID: id, scope: byCrun}
	}
	if uid, runtime, ok := podSlice(name); ok {
		return Place{Kind: Pod, Runtime: runtime, ID: uid}
	}
	unit := isUnit(name)
	switch {
	case parent.Kind == Pod && !unit && !strings.Contains(name, "conmon"):
		return Place{Kind: Container, Runtime: orContainerd(parent.Runtime), ID: name}
	case parent.branch == kubeBranch && len(name) > len("pod") && strings.HasPrefix(name, "pod"):
		return Place{Kind: Pod, Runtime: kubernetes, ID: name[len("pod"):]}
	case parent.branch == libpodBranch && isID(name):
		return Place{Kind: Pod, Runtime: podman, ID: name}
	case isID(name):
		return Place{Kind: Container, Runtime: bareRuntime(parent), ID: name}
	case parent.branch == ctrBranch && !unit:
		return Place{Kind: Container, Runtime: containerd, ID: name}
	case unit:
		return Place{Kind: Unit, Runtime: systemd, opaque: isMachine(name)}
	}
	return Place{Kind: Plain, Runtime: plainGroup, branch: branchOf(parent, name, depth),
		opaque: parent.branch == lxcBranch || strings.HasPrefix(name, "lxc.payload")}
}

// containerName knows PREFIX-ID.scope (systemd driver), PREFIX-ID (cgroupfs driver) and SLICE:PREFIX:ID (a cgroups
// path of systemd's form, given to a runtime that does not use systemd).
func containerName(name string) (id, runtime string, ok bool) {
	if i := strings.LastIndexByte(name, ':'); i >= 0 {
		left, id := name[:i], name[i+1:]
		for _, p := range prefixes {
			if strings.HasSuffix(left, ":"+p.prefix) && isID(id) {
				return id, p.runtime, true
			}
		}
		return "", "", false
	}
	name = strings.TrimSuffix(name, ".scope")
	for _, p := range prefixes {
		if id, found := strings.CutPrefix(name, p.prefix+"-"); found && isID(id) {
			return id, p.runtime, true
		}
	}
	return "", "", false
}

// podSlice knows kubepods-burstable-podUID.slice, where the dashes of the UID are underscores, also below a kubelet's
// own --cgroup-root (kubelet-kubepods-...), and machine-libpod_pod_ID.slice.
func podSlice(name string) (uid, runtime string, ok bool) {
	name, ok = strings.CutSuffix(name, ".slice")
	if !ok {
		return "", "", false
	}
	if i := strings.Index(name, "libpod_pod_"); i >= 0 && isID(name[i+len("libpod_pod_"):]) {
		return name[i+len("libpod_pod_"):], podman, true
	}
	i := strings.LastIndex(name, "-pod")
	if i < 0 || i+len("-pod") == len(name) {
		return "", "", false
	}
	front, uid := name[:i], name[i+len("-pod"):]
	front = strings.TrimSuffix(strings.TrimSuffix(front, "-burstable"), "-besteffort")
	if front != "kubepods" && !strings.HasSuffix(front, "-kubepods") {
		return "", "", false
	}
	return strings.ReplaceAll(uid, "_", "-"), kubernetes, true
}

// branchOf says what the name of a plain folder means for the names below it.
func branchOf(parent Place, name string, depth int) branch {
	switch {
	case name == "kubepods", parent.branch == kubeBranch && (name == "burstable" || name == "besteffort"):
		return kubeBranch
	case name == "docker":
		return dockerBranch
	case name == "libpod_parent":
		return libpodBranch
	case depth == 0 && (name == "k8s.io" || name == "default"):
		return ctrBranch
	case depth == 0 && name == "lxc":
		return lxcBranch
	}
	return noBranch
}

// bareRuntime guesses which engine made a folder whose name is only an id. The engine's own files are more reliable
// (Sources): Docker with --cgroup-parent names like containerd.
func bareRuntime(parent Place) string {
	if parent.branch == dockerBranch {
		return docker
	}
	return containerd
}

func orContainerd(runtime string) string {
	if runtime == kubernetes {
		return containerd
	}
	return runtime
}

func isUnit(name string) bool {
	return strings.HasSuffix(name, ".service") || strings.HasSuffix(name, ".slice") || strings.HasSuffix(name, ".scope")
}

// isMachine knows the scopes and services of systemd-machined: virtual machines and whole systems in a container.
func isMachine(name string) bool {
	return strings.HasPrefix(name, "machine-") && strings.HasSuffix(name, ".scope") ||
		strings.HasPrefix(name, "systemd-nspawn@")
}

// isID says whether the name is 64 hexadecimal digits, as every engine makes its ids.
func isID(name string) bool {
	if len(name) != 64 {
		return false
	}
	for i := range len(name) {
		c := name[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
