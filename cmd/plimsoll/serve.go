package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/kubeauth"
	webpage "plimsoll/internal/page" // page is a type of this package
	"plimsoll/internal/report"
	"plimsoll/internal/view"
	"plimsoll/internal/web"
)

// serveFlags are the flags of serve.
type serveFlags struct {
	logFlags
	listen     []string
	agent      string
	metrics    string
	hosts      []string
	cert, key  string
	clientCA   string
	tokenFile  string
	kubeAuth   bool
	kubeconfig string
	child      bool
	from       string
	always     bool
	node       string
}

// metricsHelp is the help of --metrics.
const metricsHelp = "basic: at most 12 series for each container; full: all that is known, about 35"

// parseDetail reads the value of --metrics.
func parseDetail(text string) (report.Detail, error) {
	detail, err := report.ParseDetail(text)
	if err != nil {
		err = withHint(misusef("--metrics: %v", err), metricsHelp)
	}
	return detail, err
}

// serveMemory is where serve collects its garbage sooner: below the limit of its container and its unit, 128 MiB, which
// the garbage of a snapshot file would reach.
const serveMemory = 96 << 20

func serveCommand(g *globals) *cobra.Command {
	f := &serveFlags{}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve metrics, health and status on the network, from an agent's socket and without privileges",
		Long: `Serve metrics, health and status on the network, from an agent's socket. It needs no privilege but to connect to
that socket: root, or the group of the agent's --read-group. ` + "`plimsoll run`" + ` starts one on the loopback interface.

The page at / shows who stands still now, why, and what is done about it. With --from it shows a snapshot from any machine.

Beyond the loopback interface it speaks TLS, and asks who may read: --token-file, --client-ca or --kube-auth, of which one
suffices. /healthz and /readyz are open, and say no more than ok. Without --tls-cert it makes a certificate for itself.`,
		Example: `  plimsoll serve
  plimsoll serve --from plimsoll-node1.json.gz
  plimsoll serve --listen :12779 --token-file /etc/plimsoll/token --tls-cert tls.crt --tls-key tls.key`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := f.logger(os.Stderr)
			if err != nil {
				return err
			}
			ctx, stop := untilAsked(cmd)
			defer stop()
			if f.from == "" && os.Getenv("GOMEMLIMIT") == "" {
				debug.SetMemoryLimit(serveMemory)
			}
			if f.agent == "" {
				f.agent = filepath.Join(g.StateDir, web.ReadSocket)
			}
			return f.serve(ctx, os.Stdin, cmd.OutOrStdout(), log)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.listen, "listen", []string{web.DefaultListen}, "an address to listen on (repeatable)")
	flags.StringVar(&f.agent, "agent-socket", "", "the agent's socket for readers; read.sock in the state directory")
	flags.StringVar(&f.metrics, "metrics", string(report.Basic), metricsHelp)
	flags.StringArrayVar(&f.hosts, "host", nil,
		"a name by which requests may come, beside addresses and localhost (repeatable)")
	flags.StringVar(&f.cert, "tls-cert", "", "certificate file, read again when it changes")
	flags.StringVar(&f.key, "tls-key", "", "key file of --tls-cert")
	flags.StringVar(&f.clientCA, "client-ca", "", "clients with a certificate of these authorities may read")
	flags.StringVar(&f.tokenFile, "token-file", "",
		"clients with the token in this file may read; the file is read at each request")
	flags.BoolVar(&f.kubeAuth, "kube-auth", false,
		"clients that may get the path in the cluster may read (TokenReview, SubjectAccessReview of nonResourceURLs)")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "",
		"with --kube-auth: a kubeconfig file; without one, the cluster in which this is a pod")
	flags.StringVar(&f.from, "from", "", "show this snapshot (plimsoll snapshot) in place of an agent")
	flags.BoolVar(&f.always, "always", false,
		"record the last 15 minutes of periods also while nobody looks at the page")
	flags.StringVar(&f.node, "node-name", "", "name of the node on the page; the host's name")
	flags.BoolVar(&f.child, "child", false, "end with standard input, and write the addresses to standard output")
	_ = flags.MarkHidden("child") // the flag is there
	f.logFlags.register(flags, "log why a probe fails, and answers that could not be sent")
	return cmd
}

// serve opens the addresses, and answers until the context ends.
func (f *serveFlags) serve(ctx context.Context, stdin io.Reader, stdout io.Writer, log *slog.Logger) error {
	access, authorities, err := f.access()
	if err != nil {
		return err
	}
	if (f.cert == "") != (f.key == "") {
		return withHint(misusef("--tls-cert and --tls-key belong together"), "give both, or neither")
	}
	if access == nil && f.cert != "" { // nobody elsewhere may read, and this machine's own addresses have no TLS
		return withHint(misusef("--tls-cert has no effect"),
			"--token-file, --client-ca or --kube-auth says who may read from elsewhere")
	}
	detail, err := parseDetail(f.metrics)
	if err != nil {
		return err
	}
	o := web.SiteOptions{Agent: f.agent, Detail: detail, Hosts: f.hosts, Now: time.Now, Log: log,
		Listen: slices.DeleteFunc(f.listen, func(address string) bool { return address == "" })}
	if err := f.page(&o); err != nil {
		return err
	}
	if access != nil {
		certificate := &web.Certificate{CertFile: f.cert, KeyFile: f.key, Now: time.Now}
		if _, err := certificate.Get(nil); err != nil {
			return withHint(err, "--tls-cert and --tls-key name two PEM files that belong together")
		}
		o.Access = access
		o.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate.Get, ClientCAs: authorities,
			NextProtos: []string{"http/1.1"}}
		if authorities != nil {
			o.TLS.ClientAuth = tls.VerifyClientCertIfGiven
		}
	}
	site, err := web.OpenSite(o)
	if err != nil {
		return err
	}
	if f.child {
		if err := ordinary(); err != nil {
			return err
		}
		fmt.Fprintln(stdout, strings.Join(site.Addrs(), " "))
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		go func() {
			_, _ = io.Copy(io.Discard, stdin) // until the agent is gone
			cancel()
		}()
	} else {
		log.Info("serving", "listen", site.Addrs(), "agent", f.agent, "from", f.from)
	}
	return site.Serve(ctx)
}

// page completes the options of what the page shows.
func (f *serveFlags) page(o *web.SiteOptions) error {
	o.Page = webpage.Files()
	if o.Node, o.Always = f.node, f.always; o.Node == "" {
		o.Node, _ = os.Hostname() // without one the page has no name
	}
	if f.from == "" {
		return nil
	}
	file, err := os.Open(f.from)
	if err != nil {
		return withHint(fmt.Errorf("--from: %w", err), "`plimsoll snapshot -o FILE` makes one")
	}
	defer file.Close()
	s, err := view.ReadSnapshot(file, view.MaxSnapshotBytes)
	if err != nil {
		return fmt.Errorf("--from %s: %w", f.from, err)
	}
	o.From = &s
	return nil
}

// access is who may read beyond the loopback interface; nil: nobody.
func (f *serveFlags) access() (web.Access, *x509.CertPool, error) {
	var any web.AnyOf
	var authorities *x509.CertPool
	if f.clientCA != "" {
		data, err := os.ReadFile(f.clientCA)
		if err == nil {
			authorities = x509.NewCertPool()
			if !authorities.AppendCertsFromPEM(data) {
				err = errors.New("it holds no certificate")
			}
		}
		if err != nil {
			return nil, nil, withHint(fmt.Errorf("--client-ca: %w", err), "a PEM file with one or more certificates")
		}
		any = append(any, web.ClientCertificate{})
	}
	if f.tokenFile != "" {
		if data, err := os.ReadFile(f.tokenFile); err != nil || strings.TrimSpace(string(data)) == "" {
			return nil, nil, withHint(fmt.Errorf("--token-file: %w", cmpErr(err, errors.New("it is empty"))),
				"a file with one line, such as of `openssl rand -hex 32`")
		}
		any = append(any, web.TokenFile(f.tokenFile))
	}
	if f.kubeAuth {
		api, err := kubeauth.Connect(f.kubeconfig, "plimsoll/"+version, time.Now)
		if err != nil {
			return nil, nil, withHint(err, "outside of a pod, --kubeconfig says where the API server is")
		}
		any = append(any, api)
	}
	if len(any) == 0 {
		return nil, nil, nil
	}
	return any, authorities, nil
}

// cmpErr is the first error that is one.
func cmpErr(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
