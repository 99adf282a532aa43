//go:build kube

package kube

import (
	"testing"
	"time"
)

// maxima sets the most that annotations may request.
func (d *desk) maxima(text string) {
	d.Helper()
	configMap(d.T, "koordinator-system", "ack-slo-pod-config", map[string]string{"plimsoll-maxima": text})
	time.Sleep(reaction) // the annotation that will be cut comes by another watch
}

// TestMaximaOfTheAdministrator: an annotation of a pod gets no more than the administrator allows, by each of the
// bounds, live, and an Event on the pod says what was cut.
func TestMaximaOfTheAdministrator(t *testing.T) {
	d := newDesk(t)
	for _, c := range []struct {
		name, maxima string
		check        func(*desk)
	}{
		{"cpuBurstPercent", `{"cpuBurstPercent": 20}`, func(d *desk) {
			d.ask("cpuBurstOnly", `, "cpuBurstPercent": 60`)
			d.idle.become(full(10 * ms))
			d.idle.event("CPUBurstCut", "cpuBurstPercent: 60 is above the administrator's maximum: cut to 20")
			d.ask("cpuBurstOnly", `, "cpuBurstPercent": 10`) // less is the pod's own affair
			d.idle.become(full(5 * ms))
		}},
		{"cfsQuotaBurstPercent", `{"cfsQuotaBurstPercent": 200}`, func(d *desk) {
			d.cap(`, "cfsQuotaBurstPercent": 250`, 20*ms)
			d.busy.event("CPUBurstCut", "cut to 200")
		}},
		{"cfsQuotaBurstPeriodSeconds", `{"cfsQuotaBurstPeriodSeconds": 0}`, func(d *desk) {
			d.never(`, "cfsQuotaBurstPeriodSeconds": 60`)
			d.busy.event("CPUBurstCut", "cfsQuotaBurstPeriodSeconds")
		}},
		{"extraCoresPerPod", `{"extraCoresPerPod": 0.05}`, func(d *desk) {
			d.cap(`, "cfsQuotaBurstPercent": 300`, 15*ms)
			d.busy.event("CPUBurstCut", "extraCoresPerPod")
		}},
		{"extraCoresPerNamespace", `{"extraCoresPerNamespace": 0.3}`, func(d *desk) { // both pods: limits of 0.6 CPUs
			d.cap(`, "cfsQuotaBurstPercent": 280`, 15*ms)
			d.busy.event("CPUBurstCut", "extraCoresPerNamespace")
		}},
		{"exemptNamespaces", `{"cfsQuotaBurstPercent": 200, "exemptNamespaces": ["default"]}`, func(d *desk) {
			d.cap(`, "cfsQuotaBurstPercent": 250`, 25*ms)
		}},
	} {
		d.run(c.name, func(d *desk) {
			d.maxima(c.maxima)
			c.check(d)
		})
	}
	d.end()
}
