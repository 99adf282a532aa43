package experiment

import "os/exec"

// Program finds a program that `make setup` installs.
func Program(name string) (string, error) {
	found, err := exec.LookPath(name)
	return found, WithHint(err, "run `make setup`, which installs "+name)
}

// Gated is a program that waits for a line on its standard input before it begins.
func Gated(program string, args ...string) *exec.Cmd {
	return exec.Command("/bin/sh", append([]string{"-c", `read -r go && exec "$@"`, "sh", program}, args...)...)
}
