package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"plimsoll/internal/receipt"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// Keeping the experiments over a restart of the agent.
//
// Problem: an experiment takes days, and a withdrawal is to last until a person says otherwise. A state that begins
// with the agent ends both with each upgrade.
//
// Approach: Kept is the experiments as data, and Resume gives the data to the state of the next agent. That state goes
// on with an experiment when it first decides about the same group (path and inode) with the same settings. A group
// whose settings are not known yet has policy none: its experiment waits (unclaimed). So does that of a container while
// the limit of its pod binds first.

// KeptReceipts is what is kept of all experiments over a restart of the agent.
type KeptReceipts struct {
	Node   receipt.KeptFigures `json:"node"` // of all groups, those that are gone included
	Groups []KeptReceipt       `json:"groups"`
}

// KeptReceipt is what is kept of the experiment of one group.
type KeptReceipt struct {
	Cgroup string `json:"cgroup"`
	Inode  uint64 `json:"inode"`
	Sampled
	receipt.Kept
	// Unclaimed is since when the experiment waits for its group; zero: it was on.
	Unclaimed time.Time `json:"unclaimed_since,omitzero"`
}

// Empty says whether there has been no experiment.
func (k KeptReceipts) Empty() bool { return k.Node.Since.IsZero() && len(k.Groups) == 0 }

// unclaimedFor is how long an experiment is kept for a group that is not found: the API server that says what the group
// is to get may be down.
const unclaimedFor = time.Hour

// Kept is what is to be kept of the experiments. Yield is called between two groups.
func (s *State) Kept(yield func()) KeptReceipts {
	k := KeptReceipts{Node: s.receipts.Kept(), Groups: make([]KeptReceipt, 0, len(s.unclaimed))}
	unclaimed := maps.Clone(s.unclaimed) // one may be claimed meanwhile
	for id, m := range s.groups {
		yield()
		if _, waits := unclaimed[id]; !waits && m.experiment != nil {
			k.Groups = append(k.Groups, m.kept(id))
		}
	}
	k.Groups = slices.AppendSeq(k.Groups, maps.Values(unclaimed))
	slices.SortFunc(k.Groups, func(a, b KeptReceipt) int {
		return cmp.Or(cmp.Compare(a.Cgroup, b.Cgroup), cmp.Compare(a.Inode, b.Inode))
	})
	return k
}

// kept is what is to be kept of the experiment of a group.
func (m *memory) kept(id workload.ID) KeptReceipt {
	return KeptReceipt{Cgroup: id.Path, Inode: id.Inode, Sampled: *m.sampled, Kept: m.experiment.Kept()}
}

// setAside has the experiment of a candidate wait as over a restart, if it has one.
func (s *State) setAside(now time.Time, u *candidate) {
	if u.m.experiment == nil {
		return
	}
	k := u.m.kept(u.ID)
	k.Unclaimed = now
	if s.unclaimed == nil {
		s.unclaimed = map[workload.ID]KeptReceipt{}
	}
	s.unclaimed[u.ID] = k
	u.m.experiment, u.m.sampled = nil, nil
}

// Resume goes on with experiments that were kept, before the first turn. After an error it goes on with none.
func (s *State) Resume(k KeptReceipts, now time.Time) error {
	node, err := k.Node.Figures()
	if err != nil {
		return fmt.Errorf("of the node: %w", err)
	}
	unclaimed := map[workload.ID]KeptReceipt{}
	for _, one := range k.Groups {
		if _, err := receipt.Resume(one.Kept, one.Strategy.Receipts, 0, "", now); err != nil {
			return fmt.Errorf("of %s: %w", one.Cgroup, err)
		}
		if one.Unclaimed.IsZero() {
			one.Unclaimed = now
		}
		unclaimed[workload.ID{Path: one.Cgroup, Inode: one.Inode}] = one
	}
	s.receipts, s.unclaimed = node, unclaimed
	return nil
}

// known says whether the settings of a group are known. A pod of which Kubernetes has said nothing yet has policy none.
func known(settings strategy.Strategy) bool { return settings.Policy != strategy.None }

// claim takes the experiment that was kept for the candidate out of those that wait; nil: there is none, or it is about
// other settings.
func (s *State) claim(in Input, u *candidate, name string) *receipt.Experiment {
	k, waits := s.unclaimed[u.ID]
	if !waits || !known(u.configured) {
		return nil
	}
	delete(s.unclaimed, u.ID)
	if k.Sampled != u.sampled(in) {
		return nil
	}
	e, err := receipt.Resume(k.Kept, k.Strategy.Receipts, s.seed, name, in.Now)
	if err != nil {
		return nil // never: Resume of the state has tried it
	}
	return e
}
