package report

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/cpu"
)

// pods has a pod with limits on its containers, one with a limit on the pod alone, and a service.
func pods() Status {
	c := func(name, pod, level string, limit time.Duration, lost time.Duration) Container {
		return Container{Cgroup: "/kubepods/" + name, Name: name, Pod: pod, Level: level, Limit: limit,
			Period: 100 * ms, Since: t0,
			Quota: Knob{Original: limit, Requested: limit, InForce: limit}, Totals: Totals{Periods: 100,
				Throttled: int64(lost / ms), ThrottledWall: lost, Usage: lost}}
	}
	pod := c("default/web", "", "pod", 70*ms, 0)
	pod.Quota = Knob{Original: 70 * ms, Requested: 170 * ms, InForce: 170 * ms, Changed: true}
	return Status{Mode: Active, ConfigOK: true, Now: t0.Add(time.Minute), Containers: []Container{
		pod, c("default/web/nginx", "default/web", "container", 50*ms, 7*ms),
		c("default/web/log", "default/web", "container", 20*ms, 0),
		c("shop/db", "", "pod", 300*ms, 9*ms), c("shop/db/main", "shop/db", "container", cpu.Unlimited, 0),
		c("cron.service", "", "container", 10*ms, 50*ms)}}
}

// rowsOf are the first words of the table's rows, and the notes of each.
func rowsOf(t *testing.T, s Status) (names []string, notes map[string]string) {
	t.Helper()
	var b bytes.Buffer
	if err := s.Text(&b); err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(b.String(), "\nNAME ")
	table, _, _ = strings.Cut(table, "\n\n")
	notes = map[string]string{}
	for _, line := range strings.Split(table, "\n")[1:] {
		if strings.HasPrefix(line, "  ") {
			notes[names[len(names)-1]] += line
			continue
		}
		names = append(names, strings.Fields(line)[0])
	}
	return names, notes
}

// TestPodIsFolded: a pod is a row where it alone has a limit; else what is changed of it is said below its containers.
func TestPodIsFolded(t *testing.T) {
	names, notes := rowsOf(t, pods())
	if want := []string{"default/web/nginx", "default/web/log", "shop/db", "shop/db/main",
		"cron.service"}; !slices.Equal(names, want) {
		t.Errorf("rows %q, want %q", names, want)
	}
	for name, want := range map[string]string{"default/web/nginx": "  its pod: limit 70ms, quota 170ms*",
		"default/web/log": "  its pod: limit 70ms, quota 170ms*",
		"shop/db/main":    "", "cron.service": ""} {
		if notes[name] != want {
			t.Errorf("below %s: %q, want %q", name, notes[name], want)
		}
	}
	var b bytes.Buffer
	if err := Of(pods()).Text(&b); err != nil || strings.Contains(b.String(), "default/web (pod)") ||
		!strings.Contains(b.String(), "shop/db (pod)") {
		t.Errorf("%v: the report has a row for a pod that was not throttled, or none for one that was:\n%s", err,
			b.String())
	}
}

func TestSorted(t *testing.T) {
	for order, want := range map[Order]string{
		ByName:      "cron.service default/web default/web/log default/web/nginx shop/db shop/db/main",
		ByLost:      "cron.service shop/db default/web/nginx default/web default/web/log shop/db/main",
		ByUse:       "cron.service shop/db default/web/nginx default/web default/web/log shop/db/main",
		ByThrottled: "cron.service shop/db default/web/nginx default/web default/web/log shop/db/main",
	} {
		s := pods()
		var names []string
		for _, c := range s.Sorted(order).Containers {
			names = append(names, c.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("by %s: %s, want %s", order, got, want)
		}
		if s.Containers[0].Name != "default/web" {
			t.Error("the snapshot itself was sorted")
		}
	}
	if _, err := ParseOrder("worst"); err == nil {
		t.Error("an order that there is not")
	}
}

// TestNamed: a name, a pod or a part of either chooses; a word that nothing has names what is close.
func TestNamed(t *testing.T) {
	for arg, want := range map[string]string{
		"nginx": "default/web default/web/nginx", "default/web": "default/web default/web/nginx default/web/log",
		"shop": "shop/db shop/db/main",
		"CRON": "cron.service", "/kubepods/default/web/log": "default/web default/web/log",
	} {
		s, err := pods().Named(arg)
		var names []string
		for _, c := range s.Containers {
			names = append(names, c.Name)
		}
		if got := strings.Join(names, " "); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", arg, got, err, want)
		}
	}
	for arg, want := range map[string]string{"ngnix": "such as default/web/nginx",
		"cron.srvice": "such as cron.service", "zzzzzz": "such as cron.service"} {
		_, err := pods().Named(arg)
		var unknown *UnknownError
		if !errors.As(err, &unknown) || !strings.HasPrefix(unknown.Hint(), want) {
			t.Errorf("%s: %v, want a hint that begins with %q", arg, err, want)
		}
	}
}

func TestMiddle(t *testing.T) {
	for most, want := range map[int]string{10: "0123456789", 9: "0123…6789", 4: "0…89", 1: "…"} {
		if got := Middle("0123456789", most); got != want {
			t.Errorf("%d: %q, want %q", most, got, want)
		}
	}
}
