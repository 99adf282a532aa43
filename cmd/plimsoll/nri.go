package main

import (
	"log/slog"

	"github.com/spf13/pflag"

	"plimsoll/internal/agent"
	"plimsoll/internal/nri"
	"plimsoll/internal/report"
)

// nriFlag is --nri-socket.
type nriFlag struct {
	socket string
	flag   *pflag.Flag
}

func (f *nriFlag) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.socket, "nri-socket", nri.DefaultSocket,
		`with --kube: where the container runtime listens for NRI plugins, used as soon as it is there; "" for never`)
	f.flag = flags.Lookup("nri-socket")
}

// open makes the plugin by which the agent prepares for resizes of the container runtime; nil where it is off. It is on
// with
// --kube, and where the socket is named.
func (f *nriFlag) open(kube bool, a *agent.Agent, log *slog.Logger) *nri.Plugin {
	if f.socket == "" || !kube && !f.flag.Changed {
		return nil
	}
	return nri.New(nri.Options{Socket: f.socket, PrepareResize: a.PrepareResize, Log: log})
}

// nriStatus is what the plugin adds to the agent's status.
func nriStatus(p *nri.Plugin) *report.NRI {
	if p == nil {
		return nil
	}
	s := p.Status()
	return &report.NRI{Socket: s.Socket, Connected: s.Connected, Runtime: s.Runtime, Fault: s.Fault, Asked: s.Asked,
		Prepared: s.Prepared, Late: s.Late, Lost: s.Lost}
}
