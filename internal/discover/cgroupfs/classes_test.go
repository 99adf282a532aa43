package cgroupfs

import (
	"path"
	"testing"

	"plimsoll/internal/config"
	"plimsoll/internal/strategy"
)

// TestClassesOfTheNode: what a class gets is what the node's colocation says. A container without a class has that of
// its pod's QoS class where the node asks for it.
func TestClassesOfTheNode(t *testing.T) {
	const uid = "12345678-1234-1234-1234-123456789012"
	for group, want := range map[string]struct {
		class strategy.Rank // by its class alone
		kube  strategy.Rank // by kubeQOS
	}{
		"/kubepods/besteffort/pod" + uid + "/<a>": {strategy.Neutral, strategy.Offline},
		"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + uid +
			".slice/cri-containerd-<b>.scope": {strategy.Neutral, strategy.Offline},
		"/kubepods/burstable/pod" + uid + "/<c>": {strategy.Neutral, strategy.Online},
		"/kubepods/pod" + uid + "/<d>":           {strategy.Neutral, strategy.Online},
		"/docker/<e>":                            {strategy.Neutral, strategy.Neutral},
		"/lab/batch":                             {strategy.Offline, strategy.Offline},
		"/lab/web":                               {strategy.Online, strategy.Online},
	} {
		for text, want := range map[string]strategy.Rank{"false": want.class, "true": want.kube} {
			f, err := config.Parse("test", []byte("colocation: {enable: true, kubeQOS: "+text+"}\n"+
				"overrides:\n- {cgroup: /lab/batch, class: BE}\n- {cgroup: /lab/web, class: LS}\n"))
			if err != nil {
				t.Fatal(err)
			}
			group := expand(group)
			pods, err := scanner(t, newMemory(group), Options{Resolver: f}).Pods()
			if err != nil || len(pods) != 1 {
				t.Fatalf("%s: %v, %v", group, pods, err)
			}
			c := pods[0].Containers[0]
			if c.QOS.Rank() != want || c.QOS != c.Class.QOS(f.Node().Colocation) {
				t.Errorf("kubeQOS %s: %s of class %q is %s, want %s", text, path.Base(group), c.Class, c.QOS.Rank(),
					want)
			}
		}
	}
}
