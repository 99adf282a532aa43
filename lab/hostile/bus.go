package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/godbus/dbus/v5"

	"plimsoll/internal/cpu"
	"plimsoll/internal/experiment"
)

// hangingBus is a system bus of the bench's own, on which no unit is known, and which stops to answer. To the agent it
// looks as if systemd ran. The limits of pods are written meanwhile, as kubelet and runtimes do: at each of them the
// agent asks systemd about the unit. Somebody reads the status.
type hangingBus struct {
	plain
	listener net.Listener
	silent   atomic.Bool
	run      string // the directory that hides the machine's /run
}

const limitEvery = 50 * time.Millisecond

func (h *hangingBus) prepare(_ context.Context, b *bench, s *experiment.Setup) error {
	h.silent.Store(false)
	var err error
	if h.listener, err = net.Listen("unix", b.place("bus")); err != nil {
		return fmt.Errorf("listen for D-Bus: %w", err)
	}
	go h.serve()
	if err := mountMemory("/run", 1<<20); err != nil {
		return err
	}
	h.run = "/run"
	s.Env = []string{"DBUS_SYSTEM_BUS_ADDRESS=unix:path=" + b.place("bus")}
	return os.MkdirAll(filepath.Join(h.run, "systemd", "system"), 0o755) // sd_booted(3)
}

func (h *hangingBus) begin(ctx context.Context, b *bench, a *experiment.Agent) error {
	h.silent.Store(true)
	next := 0
	h.every(ctx, limitEvery, func(context.Context) error {
		p := b.pods[next%len(b.pods)]
		next++
		return b.Limit(p.inner, cpu.Bandwidth{Quota: podQuota})
	})
	h.every(ctx, statusEvery, reader(a))
	return nil
}

func (h *hangingBus) end() error {
	err := h.plain.end()
	if h.listener != nil {
		err = errors.Join(err, h.listener.Close())
	}
	if h.run != "" {
		err = errors.Join(err, unmount(h.run))
		h.run = ""
	}
	return err
}

func (h *hangingBus) serve() {
	for {
		conn, err := h.listener.Accept()
		if err != nil {
			return // it is closed
		}
		go func() {
			defer conn.Close()
			_ = h.talk(conn) // the agent has gone
		}()
	}
}

// talk is one connection: the handshake of the specification, then an answer to each call.
func (h *hangingBus) talk(conn net.Conn) error {
	in := bufio.NewReader(conn)
	if _, err := in.ReadByte(); err != nil { // the zero that carries credentials
		return err
	}
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return err
		}
		answer := ""
		switch strings.TrimSpace(line) {
		case "BEGIN":
			return h.answer(in, conn)
		case "AUTH":
			answer = "REJECTED EXTERNAL"
		case "NEGOTIATE_UNIX_FD":
			answer = "ERROR"
		default: // AUTH EXTERNAL
			answer = "OK 0123456789abcdef0123456789abcdef"
		}
		if _, err := io.WriteString(conn, answer+"\r\n"); err != nil {
			return err
		}
	}
}

func (h *hangingBus) answer(in io.Reader, out io.Writer) error {
	for {
		call, err := dbus.DecodeMessage(in)
		if err != nil {
			return err
		}
		if h.silent.Load() || call.Type != dbus.TypeMethodCall {
			continue
		}
		reply := &dbus.Message{Type: dbus.TypeError, Headers: map[dbus.HeaderField]dbus.Variant{
			dbus.FieldReplySerial: dbus.MakeVariant(call.Serial()),
			dbus.FieldErrorName:   dbus.MakeVariant("org.freedesktop.systemd1.NoSuchUnit")}}
		switch call.Headers[dbus.FieldMember].Value() {
		case "Hello":
			reply = &dbus.Message{Type: dbus.TypeMethodReply, Body: []any{":1.1"},
				Headers: map[dbus.HeaderField]dbus.Variant{
					dbus.FieldReplySerial: dbus.MakeVariant(call.Serial()), dbus.FieldSignature: dbus.MakeVariant(
						dbus.SignatureOf(""))}}
		case "AddMatch":
			reply = &dbus.Message{Type: dbus.TypeMethodReply, Headers: map[dbus.HeaderField]dbus.Variant{
				dbus.FieldReplySerial: dbus.MakeVariant(call.Serial())}}
		}
		if err := reply.EncodeTo(out, binary.LittleEndian); err != nil {
			return err
		}
	}
}
