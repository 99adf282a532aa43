package kube

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"plimsoll/internal/strategy"
)

// static is the mirror of a static pod whose groups are named after "hash", as the kubelet makes it.
func static() *corev1.Pod {
	p := web(`{"policy": "auto"}`)
	p.CreationTimestamp = metav1.Unix(1000, 0)
	mirror(p, "hash")
	return p
}

// impostor claims to be the same static pod. It is newer than the mirror.
func impostor(edit func(*corev1.Pod)) *corev1.Pod {
	p := static()
	p.Annotations["koordinator.sh/cpuBurst"] = `{"policy": "none"}`
	p.Namespace, p.Name, p.UID = "attacker", "impostor", "u9"
	p.CreationTimestamp = metav1.Unix(2000, 0)
	edit(p)
	return p
}

// mirrored checks which pod the static pod's group is called after, "a" for none.
func (w *world) mirrored(when, name string, policy strategy.Policy) {
	w.t.Helper()
	if c := w.pod(0).Containers[0]; c.Name != name || c.Strategy.Policy != policy {
		w.t.Errorf("%s: %s with policy %s, want %s with %s", when, c.Name, c.Strategy.Policy, name, policy)
	}
}

// lies are what a pod that somebody else has made may say of itself. Only the last is not to be told from the truth.
func lies() map[string]func(*corev1.Pod) {
	return map[string]func(*corev1.Pod){
		"two annotations and an owner of kind Node": func(p *corev1.Pod) {
			p.OwnerReferences[0].Name, p.OwnerReferences[0].UID = "", ""
		},
		"the node's name, and no UID":       func(p *corev1.Pod) { p.OwnerReferences[0].UID = "" },
		"the UID of another node":           func(p *corev1.Pod) { p.OwnerReferences[0].UID = "n2-uid" },
		"the node's UID, and another name":  func(p *corev1.Pod) { p.OwnerReferences[0].Name = "n2" },
		"another kind of owner":             func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "ReplicaSet" },
		"an owner that does not control it": func(p *corev1.Pod) { p.OwnerReferences[0].Controller = nil },
		"no owner":                          func(p *corev1.Pod) { p.OwnerReferences = nil },
		"the hash alone":                    func(p *corev1.Pod) { delete(p.Annotations, staticMirror) },
		truth:                               func(*corev1.Pod) {},
	}
}

const truth = "everything that a mirror pod has"

// TestImpostorBeforeTheMirror: a pod that this node has not made is believed nothing, also while there is no mirror
// pod. One that is not to be told from the node's own is believed only if no older one claims the same.
func TestImpostorBeforeTheMirror(t *testing.T) {
	for name, lie := range lies() {
		w := newWorld(t)
		w.groups.set(group("hash", "a"))
		w.given(node(nil))
		if name != truth {
			w.given(node(nil), impostor(lie))
			w.mirrored(name+", alone", "a", strategy.None)
		}
		w.given(node(nil), impostor(lie), static())
		w.mirrored(name+", in one list", "default/web/apache", strategy.Auto)
	}
}

// TestImpostors: no pod that somebody else has made takes the place of a mirror pod, whatever it says of itself, and
// whenever it comes.
func TestImpostors(t *testing.T) {
	for name, lie := range lies() {
		fake := impostor(lie)
		w := newWorld(t)
		w.groups.set(group("hash", "a"))
		w.given(node(nil), static(), fake)
		w.mirrored(name+", in one list", "default/web/apache", strategy.Auto)
		w.given(node(nil), fake, static())
		w.mirrored(name+", in another list", "default/web/apache", strategy.Auto)
		watch := w.pods()
		watch.put(fake)
		w.mirrored(name+", a change", "default/web/apache", strategy.Auto)
		watch.drop(static())
		w.mirrored(name+", while the mirror is away", "a", strategy.None)
		watch.put(fake)
		w.mirrored(name+", a change while the mirror is away", "a", strategy.None)
		again := static()
		again.UID = "u2"
		watch.put(again)
		w.mirrored(name+", the mirror is back", "default/web/apache", strategy.Auto)
		watch.drop(fake)
		w.mirrored(name+", the impostor's end", "default/web/apache", strategy.Auto)
		if n := len(w.d.pods); n != 1 {
			t.Errorf("%s: %d pods are kept", name, n)
		}
		if watch.drop(again); len(w.d.pods)+len(w.d.mirrors.claims) != 0 {
			t.Errorf("%s: kept: %v, %v", name, w.d.pods, w.d.mirrors.claims)
		}
	}
}

// TestImpostorOfAPod: a pod that claims the UID of one that the API server has made loses it when that one comes.
func TestImpostorOfAPod(t *testing.T) {
	w := newWorld(t)
	w.groups.set(group("u1", "a"))
	fake := impostor(func(p *corev1.Pod) { p.Annotations[staticHash], p.Annotations[staticMirror] = "u1", "u1" })
	victim := web(`{"policy": "auto"}`)
	w.given(node(nil), fake)
	watch := w.pods()
	for _, p := range []*corev1.Pod{victim, fake, victim} {
		watch.put(p)
		w.mirrored("after "+p.Name, "default/web/apache", strategy.Auto)
	}
	watch.drop(fake)
	w.mirrored("after the end of the impostor", "default/web/apache", strategy.Auto)
	if len(w.d.mirrors.claims) != 0 || len(w.d.pods) != 1 {
		t.Errorf("kept: %v, %v", w.d.mirrors.claims, w.d.pods)
	}
}

// TestABeliefIsOfOneStaticPod: a pod that was believed to mirror one static pod is judged anew when it claims another.
func TestABeliefIsOfOneStaticPod(t *testing.T) {
	w := newWorld(t)
	w.groups.set(group("hash2", "b"))
	w.given(node(nil), static())
	changed := static()
	mirror(changed, "hash2")
	changed.OwnerReferences[0].UID = "n2-uid"
	changed.Status.ContainerStatuses = []corev1.ContainerStatus{runs("apache", "b")}
	w.pods().put(changed)
	w.mirrored("another node's", "b", strategy.None)
}

// TestNothingIsInheritedFromAnImpostor: a field of a pod's annotation that is no good keeps its former value, which is
// never that of a pod that claimed the UID.
func TestNothingIsInheritedFromAnImpostor(t *testing.T) {
	w := newWorld(t)
	w.groups.set(group("u1", "a"))
	fake := impostor(func(p *corev1.Pod) {
		p.Annotations[staticHash], p.Annotations[staticMirror] = "u1", "u1"
		p.Annotations["koordinator.sh/cpuBurst"] = `{"policy": "cpuBurstOnly"}`
	})
	w.given(node(nil), fake)
	w.mirrored("the impostor, alone", "attacker/impostor/apache", strategy.CPUBurstOnly)
	w.pods().put(web(`{"policy": "no such policy"}`))
	w.mirrored("the pod", "default/web/apache", strategy.Default().Policy)
}

// TestPodsOfOthersAreLeftAlone: a pod at the API server says nothing of the group of another program's pod, whatever
// the names of the two are.
func TestPodsOfOthersAreLeftAlone(t *testing.T) {
	w := newWorld(t)
	podman := group("", "a")
	podman.Path = "/machine.slice/machine-libpod_pod_" + id("b") + ".slice"
	podman.Containers[0].Path = podman.Path + "/libpod-" + id("a") + ".scope"
	podman.Containers[0].Strategy.Policy = strategy.CPUBurstOnly
	w.groups.set(podman)
	w.mirrored("nothing is known", "a", strategy.CPUBurstOnly)
	same := web(`{"policy": "none"}`)
	same.UID = types.UID(id("b"))
	w.given(node(nil), same)
	w.mirrored("a pod of its name", "a", strategy.CPUBurstOnly)
}

// TestMirrorBeforeItsNode: pods may be listed before the node. Their claims are judged when its UID is known, the
// oldest first, whatever their UIDs are.
func TestMirrorBeforeItsNode(t *testing.T) {
	fake := impostor(func(p *corev1.Pod) { p.UID = "u0" })
	for _, list := range [][]*corev1.Pod{{static(), fake}, {fake, static()}} {
		w := newWorld(t)
		w.groups.set(group("hash", "a"))
		w.given(list[0], list[1]) // no node
		w.mirrored("no node", "a", strategy.None)
		put, _ := w.d.taker(Nodes)
		w.d.learn(func() bool { return put(node(nil)) })
		w.mirrored("the node", "default/web/apache", strategy.Auto)
		renewed := node(nil)
		renewed.UID = "another"
		w.d.learn(func() bool { return put(renewed) })
		w.pods().put(static())
		w.mirrored("the node was made again", "default/web/apache", strategy.Auto)
	}
}

// TestStaticPodThatChanges: with another manifest a static pod has another UID, under the same name.
func TestStaticPodThatChanges(t *testing.T) {
	w := newWorld(t)
	w.groups.set(group("hash", "a"), group("hash2", "b"))
	w.given(node(nil), static())
	next := static()
	next.UID = "u2"
	mirror(next, "hash2")
	next.Status.ContainerStatuses = []corev1.ContainerStatus{runs("apache", "b")}
	watch := w.pods()
	watch.drop(static())
	watch.put(next)
	w.mirrored("the old group", "a", strategy.None)
	if c := w.pod(1).Containers[0]; c.Name != "default/web/apache" {
		t.Errorf("the new group: %s", c.Name)
	}
}

// TestNamesOfStaticPodsAreBounded: what is remembered of static pods that are gone does not grow for ever.
func TestNamesOfStaticPodsAreBounded(t *testing.T) {
	w := newWorld(t)
	w.groups.set(group("hash", "a"))
	w.given(node(nil), static())
	watch := w.pods()
	for i := range 3 * maxBound {
		p := static()
		p.Name, p.UID = fmt.Sprint("web", i), types.UID(fmt.Sprint("m", i))
		p.CreationTimestamp = metav1.Time{Time: time.Unix(int64(3000+i), 0)}
		mirror(p, fmt.Sprint("hash", i))
		watch.put(p)
		watch.drop(p)
	}
	if n := len(w.d.mirrors.bound); n > maxBound+1 {
		t.Errorf("%d names", n)
	}
	if w.mirrored("after all of them", "default/web/apache",
		strategy.Auto); w.d.mirrors.bound["hash"] != "default/web" {
		t.Error("the name of a static pod that lives was forgotten")
	}
}
