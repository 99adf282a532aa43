package reserve

import (
	"time"

	"plimsoll/internal/plan"
)

// fence is what is remembered of one group's part in a partition.
type fence struct{}

func (s *State) fence(in Input, t *turn, out *Output) {}

func (s *State) learnFence(now time.Time, r plan.Result) {}
