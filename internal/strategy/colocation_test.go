package strategy

import "testing"

// TestWhoExpels: a class counts where it has a part in this, and is online.
func TestWhoExpels(t *testing.T) {
	on, online := CPUQOSPatch{Enable: of(true)}, CPUQOSPatch{Enable: of(true), GroupIdentity: of(int64(1)),
		CoreExpeller: of(true)}
	off := CPUQOSPatch{Enable: of(true), CoreExpeller: of(false)}
	for name, c := range map[string]struct {
		patch ColocationPatch
		want  bool
	}{
		"nobody is enabled":      {ColocationPatch{}, false},
		"offline work alone":     {ColocationPatch{BE: CPUQOSPatch{Enable: of(true), CoreExpeller: of(true)}}, false},
		"one class":              {ColocationPatch{LS: on, LSR: off}, true},
		"a class that is not on": {ColocationPatch{LS: off}, false},
		"none wants it":          {ColocationPatch{LS: off, LSR: off, BE: on}, false},
		"another class":          {ColocationPatch{LS: off, LSR: off, System: online}, true},
	} {
		if got := c.patch.Over(DefaultColocation()).Expels(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
