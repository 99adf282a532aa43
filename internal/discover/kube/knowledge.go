package kube

import (
	"cmp"
	"maps"
	"slices"

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
// fault is counted once.
func (d *Discoverer) putPod(o *corev1.Pod) {
	var own course
	if last := d.pods[string(o.UID)]; last != nil {
		own = last.own
		if own.to == 0 && o.Spec.Resources != nil && putOff(o) { // a limit that is to be added is not in force
			without := *o
			without.Spec.Resources = &corev1.ResourceRequirements{Requests: o.Spec.Resources.Requests}
			o = &without
		}
	}
	p := newPod(o, own)
	d.judge(p)
	last := d.pods[p.key()]
	old := false
	if last != nil && last.real() == p.real() {
		p.requests, p.rejected = last.requests, last.rejected
	}
	if last == nil || last.real() != p.real() || !maps.Equal(last.annotations, p.annotations) ||
		!maps.Equal(last.labels, p.labels) {
		var bad []*config.Rejected
		old, bad = p.read()
		d.reject(p.about, bad)
	}
	d.place(p)
	if old {
		d.events.warn(p.about, reasonDeprecated, config.OldAnnotation+" is deprecated: use "+config.Annotation)
	}
}

// judge finds out whether a pod mirrors a static pod. One that only claims it is a pod as any other.
func (d *Discoverer) judge(p *pod) {
	hash, why := d.mirrors.judge(p, d.pods[p.claim.hash])
	if p.hash = hash; why != "" {
		d.Log.Warn("a pod claims to mirror a static pod: the claim is ignored", "object", "Pod "+p.name(), "why", why)
	}
}

// place stores a pod by the UID in its groups. It had another one when its claim was judged differently, and it takes
// the place of a pod that claimed the UID falsely.
func (d *Discoverer) place(p *pod) {
	uid, key := p.about.UID, p.key()
	before, other := d.mirrors.key(uid), d.pods[key]
	d.change(func() {
		if now := d.pods[before]; before != key && now != nil && now.about.UID == uid {
			delete(d.pods, before)
		}
		d.pods[key] = p
	})
	delete(d.mirrors.claims, uid)
	if other != nil && other.about.UID != uid {
		delete(d.mirrors.claims, other.about.UID)
	}
	if !p.real() {
		d.mirrors.believe(p, d.pods)
	}
}

// dropPod forgets a pod. A new mirror pod may exist by then, under the same key.
func (d *Discoverer) dropPod(o *corev1.Pod) bool {
	uid := string(o.UID)
	key := d.mirrors.key(uid)
	delete(d.mirrors.claims, uid)
	if now := d.pods[key]; now == nil || now.about.UID != uid {
		return false
	}
	d.change(func() { delete(d.pods, key) })
	return true
}

// putNode stores this node. With its UID, claims can be judged that came before.
func (d *Discoverer) putNode(n *corev1.Node) bool {
	uid := string(n.UID)
	if maps.Equal(n.Labels, d.labels) && uid == d.mirrors.node.uid {
		return false
	}
	d.change(func() { d.labels, d.found = n.Labels, true })
	if uid == d.mirrors.node.uid {
		return true
	}
	d.mirrors.node.uid = uid
	claims := slices.DeleteFunc(slices.Collect(maps.Values(d.pods)),
		func(p *pod) bool { return p.claim.hash == "" || !p.real() })
	slices.SortFunc(claims, func(a, b *pod) int {
		return cmp.Or(a.claim.made.Compare(b.claim.made), cmp.Compare(a.about.UID, b.about.UID))
	})
	for _, p := range claims {
		var judged pod
		d.change(func() { judged = *p }) // a turn of the agent may have the other one
		d.judge(&judged)
		d.place(&judged)
	}
	return true
}

// readConfigMaps reads what is new in the keys.
func (d *Discoverer) readConfigMaps() {
	c := &d.config
	read(d, config.BurstKey, &c.Cluster, config.ParseCluster)
	read(d, config.QOSKey, &c.QOS, config.ParseQOS)
	read(d, config.ThresholdKey, &c.Threshold, config.ParseThreshold)
	read(d, config.NamespaceKey, &c.Namespaces, config.ParseNamespaces)
	read(d, config.TenantsKey, &c.Tenants, config.ParseTenants)
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
	d.reject(about, bad)
	d.change(func() { *to, d.badKeys[key] = now, bad })
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
		d.Log.Warn("configuration rejected", "object", r.Object, "error", r)
		d.events.warn(about, reasonInvalid, r.Error())
	}
	d.change(func() { d.rejected += int64(len(bad)) })
}
