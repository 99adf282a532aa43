package trial
import ("testing";"fmt";"time";"plimsoll/internal/agent";"plimsoll/internal/sim";"plimsoll/internal/strategy")
func TestDbg(t *testing.T){
	for _, c := range []struct{p strategy.Policy; seed uint64}{{strategy.CFSQuotaBurstOnly,13},{strategy.Auto,6}} {
	g := Group{Path: "/lab/hog", Quota: 50 * ms, Period: 100 * ms, Load: sim.Spin(2), Strategy: with(c.p)}
	w, err := New(Scenario{Kernel: mainline(4, c.seed), Threshold: 100, Groups: []Group{g}})
	if err != nil { t.Fatal(err) }
	w.Run(1500*time.Millisecond, func(tu agent.Turn){
		st := w.Agent.Status()
		fmt.Printf("%8v next exp %8v q=%v b=%v why=%q next=%v\n", w.Kernel.Now().Sub(w.start()), w.Kernel.NextExpiry(g.Path).Sub(w.Kernel.Now()), st.Containers[0].Quota.InForce, st.Containers[0].Burst.InForce, st.Containers[0].Why, tu.Next.Sub(w.Kernel.Now()))
		for _, r := range tu.Results { fmt.Println("     ", r.Change.Knob, r.Change.From, r.Change.To, r.Outcome, r.Err) }
	})
	for _, p := range w.Kernel.Periods(g.Path) { if p.Used > 150*ms { fmt.Println(p.From.Sub(w.start()), p.Used, p.Bandwidth) } }
	}
}
