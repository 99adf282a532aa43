package main

import (
	"context"

	"plimsoll/lab/experiment"
)

// apply brings a row about.
func (b *bench) apply(ctx context.Context, r row) error {
	tree := b.groups.Tree()
	if err := tree.SetIdle(b.offline, r == idle); err != nil {
		return err
	}
	if r != idle {
		w := int64(1024)
		if r == weight {
			w = 2
		}
		if err := tree.SetWeight(b.offline, w); err != nil {
			return err
		}
	}
	return experiment.Pause(ctx, settle)
}
