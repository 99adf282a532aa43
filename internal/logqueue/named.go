package logqueue

import (
	"context"
	"log/slog"
)

// Named is a handler of a log that adds the name of a container to each line that has its group: the path of a
// container of Docker has 78 letters, and its id is all that it says.
func Named(next slog.Handler, name func(group string) string) slog.Handler { return named{next, name} }

type named struct {
	slog.Handler
	name func(group string) string
}

func (h named) Handle(ctx context.Context, r slog.Record) error {
	name := ""
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "cgroup" && a.Value.Kind() == slog.KindString {
			name = h.name(a.Value.String())
		}
		return name == ""
	})
	if name != "" {
		r.AddAttrs(slog.String("name", name))
	}
	return h.Handler.Handle(ctx, r)
}

func (h named) WithAttrs(attrs []slog.Attr) slog.Handler {
	return named{h.Handler.WithAttrs(attrs), h.name}
}

func (h named) WithGroup(name string) slog.Handler {
	return named{h.Handler.WithGroup(name), h.name}
}
