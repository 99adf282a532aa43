package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
)

// profile is what ours use of a seccomp profile as container runtimes read it (runtime-spec, config-linux.md).
type profile struct {
	DefaultAction string `json:"defaultAction"`
	Syscalls      []rule `json:"syscalls"`
}

// rule is what becomes of system calls, maybe for some arguments only.
type rule struct {
	Comment string   `json:"comment"`
	Names   []string `json:"names"`
	Action  string   `json:"action"`
	Errno   uint32   `json:"errnoRet"`
	Args    []struct {
		Index    uint32 `json:"index"`
		Value    uint64 `json:"value"`
		ValueTwo uint64 `json:"valueTwo"`
		Op       string `json:"op"`
	} `json:"args"`
}

// readProfile reads one of deploy/seccomp. It knows no field that ours do not use.
func readProfile(text []byte) (p profile, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err = d.Decode(&p)
	return p, err
}

// filter is the profile as the kernel takes it: what it does not allow is EPERM. As in a container runtime, the calls
// that this architecture does not have are left out.
func (p profile) filter() (seccomp.Filter, error) {
	here, err := arch.GetInfo("")
	if err != nil {
		return seccomp.Filter{}, err
	}
	if p.DefaultAction != "SCMP_ACT_ERRNO" {
		return seccomp.Filter{}, errors.New("a call that is not allowed is to be refused, not to kill: what an " +
			"agent wrote has to be put back")
	}
	allowed := seccomp.SyscallGroup{Action: seccomp.ActionAllow}
	policy := seccomp.Policy{DefaultAction: seccomp.ActionErrno}
	for _, r := range p.Syscalls {
		r.Names = slices.DeleteFunc(r.Names, func(name string) bool { _, has := here.SyscallNames[name]; return !has })
		switch {
		case r.Action == "SCMP_ACT_ERRNO" && r.Errno != 0 && len(r.Args) == 0:
			policy.Syscalls = append(policy.Syscalls, seccomp.SyscallGroup{Names: r.Names,
				Action: seccomp.ActionErrno | seccomp.Action(r.Errno)})
		case r.Action == "SCMP_ACT_ALLOW" && len(r.Args) == 0:
			allowed.Names = append(allowed.Names, r.Names...)
		case r.Action == "SCMP_ACT_ALLOW" && len(r.Args) == 1 && len(r.Names) == 1:
			c, err := r.condition()
			if err != nil {
				return seccomp.Filter{}, err
			}
			allowed.NamesWithCondtions = append(allowed.NamesWithCondtions,
				seccomp.NameWithConditions{Name: r.Names[0], Conditions: seccomp.ArgumentConditions{c}})
		default:
			return seccomp.Filter{}, fmt.Errorf("%s: not understood", r.Comment)
		}
	}
	policy.Syscalls = append(policy.Syscalls, allowed)
	return seccomp.Filter{NoNewPrivs: true, Policy: policy}, nil
}

// condition is that of the rule's one argument.
func (r rule) condition() (c seccomp.Condition, err error) {
	a := r.Args[0]
	c = seccomp.Condition{Argument: a.Index, Value: a.Value}
	switch {
	case a.Op == "SCMP_CMP_EQ":
		c.Operation = seccomp.Equal
	case a.Op == "SCMP_CMP_MASKED_EQ" && a.ValueTwo == 0:
		c.Operation = seccomp.BitsNotSet
	default:
		err = fmt.Errorf("%s: %s is not understood", r.Comment, a.Op)
	}
	return c, err
}

// confineCalls has this thread, and what it executes, make no other system calls than a profile allows.
func confineCalls(text string) error {
	p, err := readProfile([]byte(text))
	if err != nil {
		return err
	}
	filter, err := p.filter()
	if err != nil {
		return err
	}
	return seccomp.LoadFilter(filter)
}
