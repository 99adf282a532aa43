package agent

import "plimsoll/internal/policy"

// KeptReceipts is what is to be kept of the experiments for the next agent. The caller writes it, without the lock.
func (a *Agent) KeptReceipts() policy.KeptReceipts {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state.Kept(a.mu.Yield)
}

// ResumeReceipts goes on with the experiments of the agent before. It is called before the first turn. After an error
// they begin anew.
func (a *Agent) ResumeReceipts(k policy.KeptReceipts) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state.Resume(k, a.Clock())
}
