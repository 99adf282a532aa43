// Package cgroupfs discovers containers in any tree of control groups: those that a container engine made, known by
// their paths alone, and the systemd units and plain folders that the configuration names.
//
// Classify is pure: a path in, what stands there out. A Scanner walks the hierarchy of the cpu controller, keeps up
// with it by inotify, and looks up names and declared limits in what systemd and the engines keep about a container.
// Nothing is written, and no engine is asked to do anything.
package cgroupfs
