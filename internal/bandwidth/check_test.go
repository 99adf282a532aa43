package bandwidth

import (
	"errors"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/cpu"
)

func TestCheck(t *testing.T) {
	alinux := Rules{BurstAboveQuota: true}
	for _, c := range []struct {
		name  string
		b     cpu.Bandwidth
		rules Rules
		want  string // the rule named in the error; "" for none
	}{
		{"plain", limit(20*ms, 20*ms), Rules{}, ""},
		{"least", cpu.Bandwidth{Quota: ms, Period: ms}, Rules{}, ""},
		{"quota below 1ms", limit(ms-time.Microsecond, 0), Rules{}, "quota >= min_cfs_quota_period"},
		{"period below 1ms", cpu.Bandwidth{Quota: ms, Period: ms - 1}, Rules{}, "period >= min_cfs_quota_period"},
		{"period of 1s", cpu.Bandwidth{Quota: ms, Period: time.Second}, Rules{}, ""},
		{"period above 1s", cpu.Bandwidth{Quota: ms, Period: time.Second + 1}, Rules{},
			"period <= max_cfs_quota_period"},
		{"period of an unlimited group", cpu.Bandwidth{Quota: cpu.Unlimited}, Rules{},
			"period >= min_cfs_quota_period"},
		{"largest quota", limit(MaxQuota, 0), Rules{}, ""},
		{"quota too large", limit(MaxQuota+1, 0), Rules{}, "quota <= max_cfs_runtime"},
		{"burst above quota", limit(20*ms, 21*ms), Rules{}, "burst <= quota"},
		{"burst above quota, Alinux", limit(20*ms, 200*ms), alinux, ""},
		{"burst negative", limit(20*ms, -1), Rules{}, "burst is unsigned"},
		{"burst too large, Alinux", limit(20*ms, MaxQuota), alinux, "burst + quota <= max_cfs_runtime"},
		{"burst and quota too large", limit(MaxQuota-ms, 2*ms), Rules{}, "burst + quota <= max_cfs_runtime"},
		{"any burst without a quota", limit(cpu.Unlimited, time.Hour), Rules{}, ""},
	} {
		err := Check(c.b, c.rules)
		if !names(err, c.want) {
			t.Errorf("%s: Check = %v, want %q", c.name, err, c.want)
		}
	}
}

func TestFits(t *testing.T) {
	v1, v2 := Rules{Version: 1}, Rules{Version: 2}
	max := limit(cpu.Unlimited, 0)
	for _, c := range []struct {
		name            string
		child, ancestor cpu.Bandwidth
		rules           Rules
		fits            bool
	}{
		{"below", limit(20*ms, 0), limit(50*ms, 0), v1, true},
		{"equal", limit(50*ms, 0), limit(50*ms, 0), v1, true},
		{"above", limit(51*ms, 0), limit(50*ms, 0), v1, false},
		{"above on v2", limit(51*ms, 0), limit(50*ms, 0), v2, true},
		{"equal by ratio", cpu.Bandwidth{Quota: 5 * ms, Period: 10 * ms}, limit(50*ms, 0), v1, true},
		{"above by ratio", cpu.Bandwidth{Quota: 6 * ms, Period: 10 * ms}, limit(50*ms, 0), v1, false},
		{"unlimited below a limit", max, limit(50*ms, 0), v1, true},
		{"anything below unlimited", limit(time.Second, 0), max, v1, true},
	} {
		err := Fits(c.child, c.ancestor, c.rules)
		if (err == nil) != c.fits || err != nil && !names(err, "max(child_quota) <= parent_quota") {
			t.Errorf("%s: Fits = %v, want fits %v", c.name, err, c.fits)
		}
	}
}

func names(err error, rule string) bool {
	if rule == "" {
		return err == nil
	}
	return errors.Is(err, ErrRefused) && strings.HasSuffix(err.Error(), rule)
}
