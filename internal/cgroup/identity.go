package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// Group Identity is Alibaba Cloud Linux' and Anolis': cpu.bvt_warp_ns takes -2..2, and cpu.identity the bits of the
// same meaning (UNDERCLASS 1, HIGHCLASS 2, SMT_EXPELLER 4, IDLE_SAVER 8, IDLE_SEEKER 16). What is below inherits. No
// such kernel was run here: files, values and versions are as its documentation and its kernel's self-tests record
// them.

// bits spells a grade as cpu.identity has it.
func bits(grade int64) (string, bool) {
	text, ok := map[int64]string{2: "22", 1: "18", 0: "0", -1: "9", -2: "1"}[grade]
	return text, ok
}

// Identity reads a group's Group Identity, as cpu.bvt_warp_ns counts it.
func (t *Tree) Identity(group string) (int64, error) {
	grade, err := readValue(t, group, "cpu.bvt_warp_ns", parseGrade)
	if !errors.Is(err, fs.ErrNotExist) {
		return grade, err
	}
	return readValue(t, group, "cpu.identity", parseBits)
}

// SetIdentity writes it. The error is EINVAL while the kernel has it switched off.
func (t *Tree) SetIdentity(group string, grade int64) error {
	text, ok := bits(grade)
	if !ok {
		return fmt.Errorf("a Group Identity is -2 to 2, not %d", grade)
	}
	err := t.write(group, "cpu.bvt_warp_ns", formatInt(grade))
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return t.write(group, "cpu.identity", text)
}

// identitySysctl is the machine's switch of Group Identity, below /proc/sys/kernel. Where there is none, it is always
// on.
const identitySysctl = "sched_group_identity_enabled"

// IdentityEnabled says whether the sysctl of Group Identity is on. The error is fs.ErrNotExist where there is none.
func (t *Tree) IdentityEnabled() (bool, error) {
	if t.sysctls == nil {
		return false, fmt.Errorf("%s: %w", identitySysctl, fs.ErrNotExist)
	}
	data, err := t.sysctls.ReadFile(identitySysctl)
	if err != nil {
		return false, err
	}
	n, err := decimal(strings.TrimSpace(string(data)))
	return n != 0, err
}

// EnableIdentity turns it.
func (t *Tree) EnableIdentity(on bool) error {
	if t.sysctls == nil {
		return fmt.Errorf("%s: %w", identitySysctl, fs.ErrNotExist)
	}
	text := "0"
	if on {
		text = "1"
	}
	return t.sysctls.WriteFile(identitySysctl, []byte(text))
}

func parseGrade(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < -2 || n > 2 {
		return 0, fmt.Errorf("%q is not a Group Identity of -2 to 2", text)
	}
	return n, nil
}

func parseBits(text string) (int64, error) {
	for grade := int64(-2); grade <= 2; grade++ {
		if known, _ := bits(grade); known == text {
			return grade, nil
		}
	}
	return 0, fmt.Errorf("%q is none of the identities that stand for -2 to 2", text)
}

// identity says whether Group Identity is there, switched on, and can be borne.
func (p *prober) identity() (State, string) {
	state, detail := p.file("cpu.bvt_warp_ns", "cpu.identity")
	if state != Yes {
		return state, detail
	}
	release, err := readHost(p.host, "proc/sys/kernel/osrelease")
	if err != nil {
		return Unknown, "which kernel this is could not be found out, and some crash: " + err.Error()
	}
	if why := unbearable(strings.TrimSpace(release)); why != "" {
		return No, why
	}
	if on, err := hostNumber(p.host, "proc/sys/kernel/sched_core"); err == nil && on != 0 {
		return No, "core scheduling is on (kernel.sched_core), beside which it locks the machine up"
	}
	on, err := hostNumber(p.host, "proc/sys/kernel/"+identitySysctl)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Yes, detail + ", always on"
	case err != nil:
		return Unknown, err.Error()
	case on == 0 && p.host.Writable != nil && p.host.Writable("proc/sys/kernel/"+identitySysctl) == nil:
		return Yes, detail + ", switched on as long as it is used (kernel." + identitySysctl + ")"
	case on == 0:
		return No, detail + " is switched off, and cannot be switched on from here; sysctl -w kernel." +
			identitySysctl + "=1 does"
	}
	return Yes, detail + ", switched on"
}

// build is a range of builds of one kernel version, both ends in it.
type build struct {
	version  string
	from, to []int
	why      string
}

// unbearable says of a kernel release why its Group Identity must not be used, or nothing.
func unbearable(release string) string {
	const off = "this build has Group Identity taken out"
	version, rest, _ := strings.Cut(release, "-")
	number := buildNumber(rest)
	for _, b := range []build{
		{"4.19.91", []int{25, 1}, []int{25, 5}, "this build crashes when Group Identity is used"},
		{"4.19.91", []int{26, 0}, []int{26, 3}, off},
		{"5.10.112", []int{11, 0}, []int{11, 2}, off},
		{"5.10.134", []int{12, 0}, []int{12, 2}, off},
	} {
		if version == b.version && slices.Compare(number, b.from) >= 0 && slices.Compare(number, b.to) <= 0 {
			return b.why
		}
	}
	return ""
}

// buildNumber reads 25.3 of "25.3.al7.x86_64"; 26 is 26.0.
func buildNumber(text string) []int {
	number := []int{0, 0}
	for i, word := range strings.SplitN(text, ".", 3) {
		n, err := strconv.Atoi(word)
		if err != nil || i == len(number) {
			break
		}
		number[i] = n
	}
	return number
}
