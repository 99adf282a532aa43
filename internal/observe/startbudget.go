package observe

import (
	"maps"
	"time"
)

// startsForgotten is how long after its last start the starts of a pod are forgotten. The kubelet restarts a container
// that fails repeatedly after five minutes at most.
const startsForgotten = time.Hour

// startBudgets bound the starts of pods: all starts in one pod share startupSeconds. A start gets more CPU time than
// other times, and a container that fails and is restarted repeatedly would always be in its start.
//
// The key is the path of the pod, which stays the same when a container is restarted, or the path of a container
// without a pod. Time in which several containers of a pod start counts once.
//
// Known limits: a new pod has a new budget, and so has each `docker run`, because nothing shows that they belong
// together.
type startBudgets map[string]*startBudget

type startBudget struct {
	spent time.Duration
	until time.Time // spent counts the time until then
}

// spend accounts for a starting container of a pod, and returns the time that the pod's starts have taken so far.
func (s startBudgets) spend(pod string, born, now time.Time) time.Duration {
	b := s[pod]
	if b == nil {
		maps.DeleteFunc(s, func(_ string, b *startBudget) bool { return now.Sub(b.until) >= startsForgotten })
		b = &startBudget{until: born}
		s[pod] = b
	}
	if born.Sub(b.until) >= startsForgotten {
		*b = startBudget{until: born}
	}
	if born.After(b.until) {
		b.until = born
	}
	if now.After(b.until) {
		b.spent, b.until = b.spent+now.Sub(b.until), now
	}
	return b.spent
}
