package experiment

import (
	"errors"
	"io/fs"
	"syscall"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/hint"
)

// WithHint adds what a person can do about an error; "" adds nothing.
func WithHint(err error, advice string) error { return hint.With(err, advice) }

// Advise adds what a person can do about an error, where that is known and not said yet.
func Advise(err error) error {
	var said interface{ Hint() string }
	if errors.As(err, &said) {
		return err
	}
	return WithHint(err, advice(err))
}

func advice(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, cgroup.ErrNoCPU), errors.Is(err, fs.ErrNotExist):
		return "mount the cgroup hierarchy with the cpu controller, or name it with --cgroup-root; `plimsoll " +
			"doctor` says what is there"
	case errors.Is(err, syscall.EROFS):
		return "the cgroup hierarchy is mounted read-only, as in an ordinary container: run this on the host"
	case errors.Is(err, fs.ErrPermission):
		return "run this as root: it makes control groups of its own, and removes them in the end"
	case errors.Is(err, syscall.EBUSY):
		return "the cpu controller cannot be enabled for groups below one that has processes of its own, as in a " +
			"container: run this on the host"
	}
	return ""
}
