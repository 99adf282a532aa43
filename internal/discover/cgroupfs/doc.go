// Package cgroupfs discovers containers in any tree of control groups: those that a container engine made, known by
// their paths alone, and the systemd units and plain folders that the configuration names.
//
// Classify is pure: it turns a path into a Place. A Scanner walks the hierarchy of the cpu controller, follows its
// changes by inotify, and reads names and declared limits from the files of systemd and the engines. The package writes
// nothing, and sends no engine a command.
package cgroupfs
