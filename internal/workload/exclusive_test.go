package workload

import (
	"testing"

	"plimsoll/internal/strategy"
)

// TestAsks: what the container says goes before its class, and its class before what the node says for all.
func TestAsks(t *testing.T) {
	none, all, strict := strategy.Reserve{}, strategy.Reserve{All: true}, strategy.Reserve{All: true, Strict: true}
	for _, c := range []struct {
		class  Class
		own    Exclusive
		node   strategy.Reserve
		want   Exclusive
		byNode bool
	}{
		{ClassNone, ExclusiveByClass, none, ExclusiveNo, false},
		{ClassNone, ExclusiveByClass, all, ExclusiveYes, true},
		{ClassLS, ExclusiveByClass, strict, ExclusiveStrict, true},
		{ClassLSR, ExclusiveByClass, none, ExclusiveYes, false},
		{ClassLSE, ExclusiveByClass, strict, ExclusiveYes, false},
		{ClassBE, ExclusiveByClass, all, ExclusiveNo, false},
		{ClassSystem, ExclusiveByClass, all, ExclusiveNo, false},
		{ClassBE, ExclusiveYes, none, ExclusiveYes, false},
		{ClassNone, ExclusiveNo, strict, ExclusiveNo, false},
		{ClassLSR, ExclusiveNo, all, ExclusiveNo, false},
		{ClassNone, ExclusiveStrict, all, ExclusiveStrict, false},
	} {
		asks, byNode := Container{Class: c.class, Exclusive: c.own}.Asks(c.node)
		if asks != c.want || byNode != c.byNode {
			t.Errorf("class %q, own %q, node %+v: %q, %v; want %q, %v", c.class, c.own, c.node, asks, byNode, c.want,
				c.byNode)
		}
	}
}
