package web

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"plimsoll/internal/plan"
	"plimsoll/internal/report"
)

// ErrNoAgent says that no agent answers on the control socket.
var ErrNoAgent = errors.New("no agent is running")

// ErrNoAnswer says that there is an agent, and that it does not answer, or that only its owner may ask it.
var ErrNoAnswer = errors.New("the agent cannot be reached")

// maxAnswer bounds an answer; a status of 10,000 containers is about 10 MiB.
const maxAnswer = 64 << 20

// Client speaks to an agent through one of its sockets. Its calls end with their context.
type Client struct {
	socket string
	http   *http.Client
}

// Dial makes a client. Whether somebody answers shows at the first call: ErrNoAgent.
func Dial(socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	return &Client{socket: socket,
		http: &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

// Status gets a snapshot.
func (c *Client) Status(ctx context.Context) (report.Status, error) {
	var s report.Status
	err := c.call(ctx, http.MethodGet, "status", nil, &s)
	return s, err
}

// Healthy asks for the agent's judgement of itself: path is /healthz or /readyz.
func (c *Client) Healthy(ctx context.Context, path string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://plimsoll"+path, nil)
	if err != nil {
		return err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return c.explain(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxHealth))
	if err != nil || res.StatusCode == http.StatusOK {
		return err
	}
	return errors.New(strings.TrimSpace(string(text)))
}

// maxHealth bounds an answer to Healthy, and a refusal of follow.
const maxHealth = 4 << 10

// Report gets a report.
func (c *Client) Report(ctx context.Context) (report.Report, error) {
	var r report.Report
	err := c.call(ctx, http.MethodGet, "report", nil, &r)
	return r, err
}

// Plan gets the plan of the agent, were the policy this one ("": as configured), after watching for a while.
func (c *Client) Plan(ctx context.Context, policy string, watch time.Duration) (report.Plan, error) {
	var p report.Plan
	query := url.Values{"watch": {watch.String()}}
	if policy != "" {
		query.Set("policy", policy)
	}
	err := c.call(ctx, http.MethodGet, "plan?"+query.Encode(), nil, &p)
	return p, err
}

// Hold stops all writes. With restore, the agent puts everything back first.
func (c *Client) Hold(ctx context.Context, restore bool, reason string) ([]plan.Result, error) {
	var r report.Results
	err := c.call(ctx, http.MethodPost, "hold", holdRequest{restore, reason}, &r)
	return r.Results, err
}

// Retire has the agent put everything back, and write nothing until it is stopped.
func (c *Client) Retire(ctx context.Context) ([]plan.Result, error) {
	var r report.Results
	err := c.call(ctx, http.MethodPost, "retire", struct{}{}, &r)
	return r.Results, err
}

// Resume ends a hold.
func (c *Client) Resume(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, "resume", struct{}{}, &struct{}{})
}

// Pause keeps a container at its limit for d; 0 ends a pause. report.Find finds the container by its name.
func (c *Client) Pause(ctx context.Context, container string, d time.Duration) (Target, error) {
	var t Target
	err := c.call(ctx, http.MethodPost, "pause", targetRequest{container, duration(d)}, &t)
	return t, err
}

// Release puts back values that would make another writer of the group's limit fail. report.Find finds the group
// by its name.
func (c *Client) Release(ctx context.Context, container string, d time.Duration) (Released, error) {
	var r Released
	err := c.call(ctx, http.MethodPost, "release", targetRequest{container, duration(d)}, &r)
	return r, err
}

func (c *Client) call(ctx context.Context, method, name string, body, answer any) error {
	var payload io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		payload = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://plimsoll/api/v1/"+name, payload)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return c.explain(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return c.explain(err)
	}
	if res.StatusCode != http.StatusOK {
		return remoteError(res, data)
	}
	if err := json.Unmarshal(data, answer); err != nil {
		return fmt.Errorf("%s: answer of the agent: %w", name, err)
	}
	return nil
}

func remoteError(res *http.Response, data []byte) error {
	e := &Error{Code: res.StatusCode}
	if err := json.Unmarshal(data, e); err != nil || e.Msg == "" {
		e.Msg = fmt.Sprintf("the agent answered %d: %.200s", e.Code, bytes.TrimSpace(data))
	}
	switch {
	case res.Header.Get("Retry-After") != "":
		e.wrapped = ErrBusy
	case e.Code == http.StatusServiceUnavailable: // its loop hangs
		e.wrapped = ErrNoAnswer
	}
	return e
}

// explain says what a failed call means for the person who made it.
func (c *Client) explain(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return &Error{Msg: fmt.Sprintf("%v (%s)", ErrNoAgent, c.socket), wrapped: ErrNoAgent,
			Advice: "is --state-dir the one that the agent was started with?"}
	case errors.Is(err, fs.ErrPermission):
		return &Error{Msg: err.Error(), wrapped: fmt.Errorf("%w: %w", ErrNoAnswer, err),
			Advice: "only root may control the agent, and the group of its socket read it: run this as root"}
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Msg: "the agent does not answer", wrapped: fmt.Errorf("%w: %w", ErrNoAnswer, err),
			Advice: "see its log; a file named hold in the state directory stops its writes at its next turn"}
	}
	return fmt.Errorf("ask the agent: %w", err)
}

// follow reads the agent's frames until it ends, and says why it did.
func (c *Client) follow(ctx context.Context, each func(frame)) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://plimsoll/api/v1/follow", nil)
	if err != nil {
		return err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return c.explain(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		data, err := io.ReadAll(io.LimitReader(res.Body, maxHealth))
		if err != nil {
			return c.explain(err)
		}
		return remoteError(res, data)
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		var f frame
		if err := json.Unmarshal(lines.Bytes(), &f); err != nil {
			return fmt.Errorf("what the agent tells: %w", err)
		}
		each(f)
	}
	if err := lines.Err(); err != nil && ctx.Err() == nil {
		return c.explain(err)
	}
	return &Error{Msg: "the agent has ended", wrapped: ErrNoAgent}
}
