package nri

import (
	"path"
	"strings"
)

// groupOf is the control group of a container or a pod as runtimes name it (runtime-spec, config-linux.md,
// cgroupsPath): a path, or with the systemd driver "SLICE:PREFIX:NAME" or a slice alone. It is "" for what is neither.
func groupOf(name string) string {
	if strings.HasPrefix(name, "/") {
		return path.Clean(name)
	}
	slice, scope, isScope := strings.Cut(name, ":")
	if !strings.HasSuffix(slice, ".slice") {
		return ""
	}
	group := slicePath(slice)
	if !isScope {
		return group
	}
	prefix, id, ok := strings.Cut(scope, ":")
	if !ok || id == "" {
		return ""
	}
	return path.Join(group, prefix+"-"+id+".scope")
}

// slicePath is where systemd puts a slice: a-b.slice is in a.slice (systemd.slice(5)).
func slicePath(slice string) string {
	at := "/"
	name := strings.TrimSuffix(slice, ".slice")
	for i, r := range name {
		if r == '-' && i > 0 {
			at = path.Join(at, name[:i]+".slice")
		}
	}
	return path.Join(at, slice)
}
