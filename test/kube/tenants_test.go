//go:build kube

package kube

import (
	"testing"
	"time"
)

// tenants sets what those may do who write pods.
func (d *desk) tenants(text string) {
	d.Helper()
	configMap(d.T, "koordinator-system", "ack-slo-pod-config", map[string]string{"plimsoll-tenants": text})
	time.Sleep(reaction) // the annotation that will be cut comes by another watch
}

// TestBoundsOfTheAdministrator: an annotation of a pod gets no more than the administrator allows, by each of the
// bounds, live, and an Event on the pod says what it does not get.
func TestBoundsOfTheAdministrator(t *testing.T) {
	d := newDesk(t)
	for _, c := range []struct {
		name, tenants string
		check         func(*desk)
	}{
		{"without any", `{}`, func(d *desk) {
			d.ask("cpuBurstOnly", `, "cfsQuotaBurstPercent": 400`)
			d.idle.event("CPUBurstCut",
				"cfsQuotaBurstPercent: 400 asked, 300 given: what the pod has without its annotation")
		}},
		{"cpuBurstPercent", `{"annotationMaxima": [{"namespaces": ["*"], "cpuBurstPercent": 20}]}`, func(d *desk) {
			d.ask("cpuBurstOnly", `, "cpuBurstPercent": 60`)
			d.idle.become(full(10 * ms))
			d.idle.event("CPUBurstCut", "cpuBurstPercent: 60 asked, 20 given: annotationMaxima")
			d.ask("cpuBurstOnly", `, "cpuBurstPercent": 10`) // less is the pod's own affair
			d.idle.become(full(5 * ms))
		}},
		{"cfsQuotaBurstPercent", `{"annotationMaxima": [{"namespaces": ["*"], "cfsQuotaBurstPercent": 200}]}`,
			func(d *desk) {
				d.cap(`, "cfsQuotaBurstPercent": 250`, 20*ms)
				d.busy.event("CPUBurstCut", "cfsQuotaBurstPercent: 250 asked, 200 given: annotationMaxima")
			}},
		{"cfsQuotaBurstPeriodSeconds", `{"annotationMaxima": [{"namespaces": ["*"], "cfsQuotaBurstPeriodSeconds": 0}]}`,
			func(d *desk) {
				d.never(`, "cfsQuotaBurstPeriodSeconds": 60`)
				d.busy.event("CPUBurstCut", "cfsQuotaBurstPeriodSeconds: 60 asked, 0 given")
			}},
		{"a namespace that is allowed more",
			`{"annotationMaxima": [{"namespaces": ["default"], "cfsQuotaBurstPercent": 400}, {"namespaces": ["*"], "cfsQuotaBurstPercent": 200}]}`,
			func(d *desk) { d.cap(`, "cfsQuotaBurstPercent": 350`, 35*ms) }},
		{"extraCoresPerPod", `{"extraCoresPerPod": 0.05}`, func(d *desk) {
			d.cap(`, "cfsQuotaBurstPercent": 300`, 15*ms)
			d.busy.event("CPUBurstCut", "extraCoresPerPod")
		}},
		{"extraCoresPerNamespace", `{"extraCoresPerNamespace": 0.07}`, func(d *desk) {
			d.cap(`, "cfsQuotaBurstPercent": 280`, 17*ms)
			d.busy.event("CPUBurstCut", "extraCoresPerNamespace")
		}},
		{"extraCoresPerNode", `{"extraCoresPerNode": 0.09}`, func(d *desk) {
			d.cap(`, "cfsQuotaBurstPercent": 290`, 19*ms)
			d.busy.event("CPUBurstCut", "extraCoresPerNode")
		}},
	} {
		d.run(c.name, func(d *desk) {
			d.tenants(c.tenants)
			c.check(d)
		})
	}
	d.end()
}
