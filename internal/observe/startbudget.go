package observe

import "time"

// startsForgotten is how long a pod must be without a new container before its starts are forgotten. The kubelet waits five
// minutes at most before it starts a container anew that fails again and again.
const startsForgotten = time.Hour

// startBudgets bound the starts of pods: all that happen in one pod share startupSeconds. A start is handed more than other
// times, and a container that fails and is started anew again and again would be in its start all the time.
//
// The key is the path of the pod, which stays the same when a container in it is started anew; of a container without a
// pod its own path. Time in which several containers of a pod start counts once.
//
// Known limits: a new pod has a new budget, and so has each `docker run`, for nothing tells that they belong together.
type startBudgets map[string]*startBudget

type startBudget struct {
	spent time.Duration
	until time.Time // spent counts the time until then
}

// spend books a new container of a pod, born then, and says for how long the pod has had new ones.
func (s startBudgets) spend(pod string, born, now time.Time) time.Duration {
	b := s[pod]
	if b == nil {
		s.forget(now)
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

// forget keeps the map from growing without bound.
func (s startBudgets) forget(now time.Time) {
	for pod, b := range s {
		if now.Sub(b.until) >= startsForgotten {
			delete(s, pod)
		}
	}
}
