package cgrouptest

import "testing"

func TestAtLeast(t *testing.T) {
	for _, tt := range []struct {
		release, version string
		want             bool
	}{
		{"6.1.0-28-cloud-amd64", "5.14", true},
		{"5.10.0-46-cloud-amd64", "5.14", false},
		{"5.14.0", "5.14", true},
		{"6.18.44-fc-v657", "6.6", true},
		{"6.6.12", "6.10", false},
		{"4.19.91-26.al7", "5.14", false},
	} {
		if got := AtLeast(tt.release, tt.version); got != tt.want {
			t.Errorf("AtLeast(%q, %q) = %v", tt.release, tt.version, got)
		}
	}
}
