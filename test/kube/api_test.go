//go:build kube

package kube

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A start of kubectl costs a quarter of a second of CPU time, and a test asks many times. So the requests that tests
// make again and again go to the API server without kubectl; what is asked for once, or by a person,
// still goes by kubectl.

// apiClient is a client of the cluster's administrator.
var apiClient = sync.OnceValues(func() (*http.Client, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(scratch, "pki/admin.crt"), filepath.Join(scratch, "pki/admin.key"))
	if err != nil {
		return nil, err
	}
	root, err := os.ReadFile(filepath.Join(scratch, "pki/ca.crt"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(root)
	return &http.Client{Timeout: wait, Transport: &http.Transport{DialContext: dialInside,
		TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}}}, nil
})

// refused is an answer of the API server that is none of 2xx.
type refused struct {
	code int
	text string
}

func (r *refused) Error() string { return fmt.Sprintf("%d: %s", r.code, r.text) }

// gone says whether there is no such object.
func gone(err error) bool { r, ok := err.(*refused); return ok && r.code == http.StatusNotFound }

// conflicts says whether there is such an object already.
func conflicts(err error) bool { r, ok := err.(*refused); return ok && r.code == http.StatusConflict }

// request sends one to the API server. Of a patch the kind is said: merge or strategic-merge.
func request(method, at, patch string, body any) ([]byte, error) {
	client, err := apiClient()
	if err != nil {
		return nil, err
	}
	var text []byte
	if body != nil {
		if text, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequest(method, "https://10.99.0.1:6443"+at, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if patch != "" {
		req.Header.Set("Content-Type", "application/"+patch+"-patch+json")
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode/100 != 2 {
		err = &refused{res.StatusCode, method + " " + at + ": " + string(answer)}
	}
	return answer, err
}

// get reads an object, or a list.
func get(t *testing.T, at string, into any) {
	t.Helper()
	answer, err := request(http.MethodGet, at, "", nil)
	if err == nil {
		err = json.Unmarshal(answer, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// apply makes an object, or puts it in the place of the one of this name.
// A pod of this name that still ends is waited for.
func apply(t *testing.T, o object) {
	t.Helper()
	meta := o["metadata"].(object)
	kinds := map[any]string{"Pod": "/api/v1/namespaces/%s/pods", "ConfigMap": "/api/v1/namespaces/%s/configmaps",
		"DaemonSet": "/apis/apps/v1/namespaces/%s/daemonsets"}
	at := fmt.Sprintf(kinds[o["kind"]], meta["namespace"])
	eventually(t, wait, func() string {
		_, err := request(http.MethodPost, at, "", o)
		if conflicts(err) && o["kind"] != "Pod" {
			_, err = request(http.MethodPut, path.Join(at, meta["name"].(string)), "", o)
		}
		if err == nil {
			return ""
		}
		if !conflicts(err) {
			t.Fatal(err)
		}
		return err.Error()
	})
}

// serverVersion is that of Kubernetes.
func serverVersion(t *testing.T) string {
	t.Helper()
	var v struct{ GitVersion string }
	get(t, "/version", &v)
	return v.GitVersion
}

// at is where the API server has the pod.
func (p *pod) at() string { return "/api/v1/namespaces/" + p.namespace + "/pods/" + p.name }

// patch changes the pod, or a subresource of it.
func (p *pod) patch(subresource, kind string, change object) {
	p.t.Helper()
	if _, err := request(http.MethodPatch, path.Join(p.at(), subresource), kind, change); err != nil {
		p.t.Fatal(err)
	}
}

// conditions are those of the pod that are true, by type, with their reason and message.
func (p *pod) conditions() map[string]string {
	p.t.Helper()
	var o struct {
		Status struct {
			Conditions []struct{ Type, Status, Reason, Message string }
		}
	}
	get(p.t, p.at(), &o)
	are := map[string]string{}
	for _, c := range o.Status.Conditions {
		if c.Status == "True" {
			are[c.Type] = c.Reason + ": " + c.Message
		}
	}
	return are
}

// ready waits until the pod is.
func (p *pod) ready() {
	p.t.Helper()
	eventually(p.t, wait, func() string {
		are := p.conditions()
		if _, ok := are["Ready"]; ok {
			return ""
		}
		return fmt.Sprintf("%s is not ready: %v", p.name, are)
	})
}

// dialInside opens a connection in the cluster's network namespace:
// a socket belongs to that of the thread that makes it.
func dialInside(ctx context.Context, network, address string) (net.Conn, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, err
	}
	defer own.Close()
	theirs, err := os.Open(strings.TrimPrefix(inside, "--net="))
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	// Making the socket, and so Control, is this goroutine's: with an IP address nothing else is started.
	dialer := net.Dialer{Timeout: 5 * time.Second, FallbackDelay: -1}
	if err := unix.Setns(int(theirs.Fd()), syscall.CLONE_NEWNET); err != nil {
		return nil, err
	}
	conn, err := dialer.DialContext(ctx, network, address)
	if back := unix.Setns(int(own.Fd()), syscall.CLONE_NEWNET); back != nil {
		panic(back) // the thread would go on in the other namespace
	}
	return conn, err
}
