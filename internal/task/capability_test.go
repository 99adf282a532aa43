package task

import (
	"strings"
	"testing"

	"plimsoll/internal/capability"
)

// TestWithout: a capability that this process has is no obstacle; one that no kernel has is named.
func TestWithout(t *testing.T) {
	const none = capability.Capability(63)
	if why := without(none, "cookie"); !strings.Contains(why, "without capability 63 a cookie cannot be given") {
		t.Errorf("%q", why)
	}
	for _, c := range capability.All() {
		missing, err := capability.Missing(c)
		if err != nil {
			t.Fatal(err)
		}
		if why := without(c, "slice"); (why == "") != (len(missing) == 0) {
			t.Errorf("%v: %q", c, why)
		}
	}
}
