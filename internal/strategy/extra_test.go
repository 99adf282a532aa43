package strategy

import "testing"

// TestExtraCoresOver: each bound that is set is laid over the other's, 0 too, and no other.
func TestExtraCoresOver(t *testing.T) {
	bounds := []Bound{{}, {Set: true}, {Set: true, CPUs: 2}}
	own := Bound{Set: true, CPUs: 7}
	for _, pod := range bounds {
		for _, namespace := range bounds {
			for _, node := range bounds {
				want := ExtraCores{PerPod: own, PerNamespace: own, PerNode: own}
				for of, b := range map[*Bound]Bound{&want.PerPod: pod, &want.PerNamespace: namespace,
					&want.PerNode: node} {
					if b.Set {
						*of = b
					}
				}
				got := ExtraCores{pod, namespace, node}.Over(ExtraCores{own, own, own})
				if got != want {
					t.Errorf("%v, %v, %v: %+v, want %+v", pod, namespace, node, got, want)
				}
			}
		}
	}
}
