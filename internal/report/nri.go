package report

import (
	"cmp"
	"fmt"
)

// NRI is the state of the connection to the container runtime, which asks before it changes a limit.
type NRI struct {
	Socket    string `json:"socket"`            // where the runtime listens
	Connected bool   `json:"connected"`         // the container runtime is connected
	Runtime   string `json:"runtime,omitempty"` // which runtime it is
	Fault     string `json:"error,omitempty"`   // why it is not connected
	Asked     int64  `json:"asked"`             // changes of a limit that the runtime announced, since the start
	Prepared  int64  `json:"prepared"`          // of these, those before which bursts or raised quotas were put back
	Late      int64  `json:"late"`              // of these, those that were answered before that was done
	Lost      int64  `json:"lost"`              // connections that ended
}

// line is "containerd v2.2.9 asks before it changes a limit; 3 times, prepared for it 2 times".
func (n NRI) line() string {
	if !n.Connected {
		return fmt.Sprintf("not connected (%s); bursts are lowered only after a resize is seen",
			cmp.Or(n.Fault, "no runtime connected"))
	}
	line := fmt.Sprintf("%s asks before it changes a limit; %s, prepared for it %s", n.Runtime,
		several(n.Asked, "time"), several(n.Prepared, "time"))
	if n.Late > 0 {
		line += fmt.Sprintf(", %s too late", several(n.Late, "time"))
	}
	return line
}

func nriMetrics() []metric[NRI] {
	return []metric[NRI]{
		gauge("nri_connected", "1 while the container runtime asks before it changes a limit.", nil,
			func(n NRI) float64 { return bit(n.Connected) }),
		counter("nri_asked_total", "Changes of a limit that the container runtime announced.", nil,
			func(n NRI) float64 { return float64(n.Asked) }),
		counter("nri_prepared_total",
			"Announced changes of a limit before which bursts or raised quotas were restored.", nil,
			func(n NRI) float64 { return float64(n.Prepared) }),
		counter("nri_late_total",
			"Announced changes of a limit that the runtime made before bursts and raised quotas were restored.", nil,
			func(n NRI) float64 { return float64(n.Late) }),
		counter("nri_lost_total", "Connections to the container runtime that ended.", nil,
			func(n NRI) float64 { return float64(n.Lost) }),
	}
}
