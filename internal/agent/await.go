package agent

import (
	"context"
	"time"
)

// await waits for the next turn.
func (a *Agent) await(ctx context.Context, timer *time.Timer) {
	for {
		timer.Reset(max(0, a.nextTurn().Sub(a.Clock())))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-a.Discover.Wake():
			a.regroup()
			time.Sleep(gather)
		case <-a.poke:
		case <-a.sooner:
			continue
		}
		return
	}
}

func (a *Agent) nextTurn() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.next
}

// Turns has a value when a turn was taken, for what goes with the agent's turns so as not to wake the machine for itself.
func (a *Agent) Turns() <-chan struct{} { return a.turned }

// wake asks for a turn now.
func (a *Agent) wake() { signal(a.poke) }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Wanted has a value when a turn is wanted now. Run takes it itself.
func (a *Agent) Wanted() <-chan struct{} { return a.poke }
