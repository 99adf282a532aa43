package kube

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	"plimsoll/internal/config"
)

// The reasons of Events.
const (
	reasonInvalid    = "CPUBurstInvalid"
	reasonCut        = "CPUBurstCut"
	reasonDeprecated = "CPUBurstDeprecated"
	reasonForeign    = "CPULimitForeignWriter"
)

// putPod stores a new or changed pod. Its annotations and labels are parsed again only when they changed, so that a
// fault is counted once. A pod that claims to mirror another never replaces the pod that has this UID.
func (d *Discoverer) putPod(o *corev1.Pod) bool {
	p := newPod(o)
	last := d.pods[p.key()]
	if last != nil && last.real() && !p.real() {
		d.Log.Warn("a pod claims to mirror another pod: ignored", "pod", p.name(), "other", last.name())
		return false
	}
	d.pods[p.key()] = p
	if last != nil && last.real() == p.real() {
		p.requests, p.rejected = last.requests, last.rejected
		if maps.Equal(last.annotations, p.annotations) && maps.Equal(last.labels, p.labels) {
			return true
		}
	}
	old, bad := p.read()
	d.reject(p.about, bad)
	if old {
		d.events.warn(p.about, reasonDeprecated, config.OldAnnotation+" is deprecated: use "+config.Annotation)
	}
	return true
}

// dropPod forgets a pod. A new mirror pod may exist by then, under the same key.
func (d *Discoverer) dropPod(o *corev1.Pod) bool {
	p := newPod(o)
	if now := d.pods[p.key()]; now == nil || now.about.UID != p.about.UID {
		return false
	}
	delete(d.pods, p.key())
	return true
}

// readConfigMaps reads what is new in the keys.
func (d *Discoverer) readConfigMaps() {
	c := &d.config
	read(d, config.BurstKey, &c.Cluster, config.ParseCluster)
	read(d, config.QOSKey, &c.QOS, config.ParseQOS)
	read(d, config.ThresholdKey, &c.Threshold, config.ParseThreshold)
	read(d, config.NamespaceKey, &c.Namespaces, config.ParseNamespaces)
	read(d, config.MaximaKey, &c.Maxima, config.ParseMaxima)
}

// read parses a key of the first ConfigMap that has it, when its text is another one, over what was good before.
func read[T any](d *Discoverer, key string, to *T, parse func(object, text string, last T) (T, []*config.Rejected)) {
	about, text := d.find(key)
	stamp := about.UID + "\n" + text
	if d.texts[key] == stamp {
		return
	}
	d.texts[key] = stamp
	now, bad := parse("ConfigMap "+about.Namespace+"/"+about.Name, text, *to)
	*to, d.badKeys[key] = now, bad
	d.reject(about, bad)
}

// find is the first ConfigMap that has a key, and its text.
func (d *Discoverer) find(key string) (Object, string) {
	for _, n := range d.Names {
		if m := d.maps[n]; m != nil {
			if text, ok := m.Data[key]; ok {
				return Object{Kind: "ConfigMap", Namespace: m.Namespace, Name: m.Name, UID: string(m.UID)}, text
			}
		}
	}
	return Object{}, ""
}

// reject reports rejected fields, each once.
func (d *Discoverer) reject(about Object, bad []*config.Rejected) {
	for _, r := range bad {
		d.rejected++
		d.Log.Warn("configuration rejected", "error", r)
		d.events.warn(about, reasonInvalid, r.Error())
	}
}
