package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/hint"
	"plimsoll/internal/progress"
	"plimsoll/internal/report"
	"plimsoll/internal/view"
	"plimsoll/internal/web"
)

// snapshotFlags are the flags of snapshot.
type snapshotFlags struct {
	url, out, tokenFile string
	force               bool
}

// snapshotTimeout bounds the making of a file of a thousand containers.
const snapshotTimeout = 30 * time.Second

func snapshotCommand() *cobra.Command {
	f := &snapshotFlags{}
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "Write what the page shows, with its last 15 minutes, to one file that opens elsewhere",
		Long: `Write what the page shows, with the periods of the last 15 minutes, to one file. ` + "`plimsoll serve --from FILE`" + ` shows it on
any machine, without an agent. It holds the names, limits and use of all containers of the node, and nothing else.

Periods are recorded while somebody looks at the page, and for a minute after; ` + "`plimsoll serve --always`" + ` records them always.`,
		Example: `  plimsoll snapshot
  plimsoll snapshot -o slow.json.gz && plimsoll serve --from slow.json.gz`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := within(cmd, snapshotTimeout)
			defer cancel()
			var notes strings.Builder
			bar := progress.Start(bars(cmd), "fetching", 0)
			err := f.run(ctx, cmd.OutOrStdout(), &notes)
			bar.Stop()
			fmt.Fprint(cmd.ErrOrStderr(), notes.String())
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.out, "output", "o", "",
		"the file to write; - for standard output; without it a name with the node and the time, here")
	flags.BoolVar(&f.force, "force", false, "replace the file if it exists")
	flags.StringVar(&f.url, "url", "http://"+web.DefaultListen, "where the process that serves the page listens")
	flags.StringVar(&f.tokenFile, "token-file", "", "file with the token to send, where that process asks for one")
	return cmd
}

func (f *snapshotFlags) run(ctx context.Context, stdout, notes io.Writer) error {
	if f.out == toStdout && noTerminal(stdout) != nil {
		return noTerminal(stdout)
	}
	if err := f.writable(f.out); err != nil {
		return err
	}
	res, err := f.get(ctx)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if f.out == toStdout {
		_, err := io.Copy(stdout, res.Body)
		return err
	}
	name := f.out
	if name == "" {
		name = suggested(res.Header.Get("Content-Disposition"))
		if err := f.writable(name); err != nil {
			return err
		}
	}
	s, err := writeSnapshot(name, res.Body)
	if err != nil {
		return err
	}
	fmt.Fprintf(notes, "%s: %s\n", report.Printable(name), holds(s))
	fmt.Fprintf(notes, "plimsoll: hint: `plimsoll serve --from %s` shows it, on any machine\n", hint.Word(name))
	return nil
}

// writable refuses a name that the file may not take. A rename would replace a device such as /dev/null itself.
func (f *snapshotFlags) writable(name string) error {
	info, err := os.Lstat(name)
	switch {
	case name == toStdout, err != nil: // the writing says better what is wrong
		return nil
	case !info.Mode().IsRegular():
		return withHint(misusef("%s is not a regular file", name), "-o - writes to standard output")
	case !f.force:
		return withHint(fmt.Errorf("%s: %w", name, fs.ErrExist), "choose another -o, or give --force to replace it")
	}
	return nil
}

// holds says what is in a snapshot.
func holds(s view.Snapshot) string {
	text := fmt.Sprintf("%d containers", len(s.View.Rows))
	if s.View.Recording == nil {
		return text + ", without their periods, which are not measured"
	}
	span := min(s.Made.Sub(s.View.Recording.Since), 15*time.Minute).Round(time.Second)
	return fmt.Sprintf("%s, with their periods of the last %s", text, span)
}

// withoutTLS is how to ask a process that serves TLS.
const withoutTLS = "--url http://127.0.0.1:12780, where the chart's pod listens, and `plimsoll serve` with a second " +
	"--listen 127.0.0.1:12780"

// get asks for the file.
func (f *snapshotFlags) get(ctx context.Context) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(f.url, "/")+"/api/v1/snapshot", nil)
	if err != nil {
		return nil, withHint(misusef("--url: %v", err), "such as http://"+web.DefaultListen)
	}
	if f.tokenFile != "" {
		token, err := os.ReadFile(f.tokenFile)
		if err != nil {
			return nil, withHint(fmt.Errorf("--token-file: %w", err),
				"the file that `plimsoll serve --token-file` has, or a copy")
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	res, err := http.DefaultClient.Do(req)
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil, withHint(fmt.Errorf("nobody serves at %s", f.url),
			"`plimsoll run` and `plimsoll serve` do; --url says where")
	case errors.As(err, &untrusted): // as that which it makes for itself
		return nil, withHint(fmt.Errorf("ask for a snapshot: %w", err), "on its machine "+withoutTLS)
	case err != nil:
		return nil, fmt.Errorf("ask for a snapshot: %w", err)
	case res.StatusCode == http.StatusOK:
		return res, nil
	}
	defer res.Body.Close()
	e := &web.Error{}
	if data, err := io.ReadAll(io.LimitReader(res.Body, 64<<10)); err != nil || json.Unmarshal(data, e) != nil ||
		e.Msg == "" {
		err := fmt.Errorf("ask for a snapshot: %s answered %s", f.url, res.Status)
		// So do Go's servers answer to who speaks no TLS.
		if res.StatusCode == http.StatusBadRequest && strings.HasPrefix(f.url, "http:") {
			err = withHint(err, "it may serve TLS: "+withoutTLS+"; or --url "+
				"https://..., if its certificate is trusted here")
		}
		return nil, err
	}
	return nil, e
}

// suggested is the name that the server proposes, without any directory.
func suggested(disposition string) string {
	if _, params, err := mime.ParseMediaType(disposition); err == nil {
		if name := filepath.Base(params["filename"]); name != "." && name != "/" {
			return name
		}
	}
	return "plimsoll.json.gz"
}

// writeSnapshot writes a file for its owner alone, once it is read through: nothing incomplete gets its name.
func writeSnapshot(name string, from io.Reader) (view.Snapshot, error) {
	part, err := os.CreateTemp(filepath.Dir(name), ".plimsoll-*")
	if err != nil {
		return view.Snapshot{}, withHint(err, "-o names another file")
	}
	defer os.Remove(part.Name()) // there is none once it has its name
	s, err := view.ReadSnapshot(io.TeeReader(from, part), view.MaxSnapshotBytes)
	if err == nil {
		_, err = io.Copy(part, from)
	}
	if err = errors.Join(err, part.Close()); err != nil {
		return s, err
	}
	return s, os.Rename(part.Name(), name)
}
