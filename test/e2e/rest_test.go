package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/handler/openapitest"
)

// restAnswer is what the REST API answers.
type restAnswer struct {
	status int
	header http.Header
	body   json.RawMessage
	raw    string // with curl: headers and all, as it prints them
	took   string // with curl: from the start to the last byte, in seconds
}

// get is a member of the body by its path.
func (a restAnswer) get(path string) string { return member(a.body, path) }

// problem is a refusal as "STATUS TYPE detail".
func (a restAnswer) problem() string {
	return fmt.Sprintf("%d %s %s", a.status, a.get("errorType"), a.get("detail"))
}

// newCall is a request to the REST API. Headers are "Name: value"; without a Content-Type, a body is JSON; "Content-Type:" is none, as with curl.
func (p *platform) newCall(method, path, token, body string, headers ...string) (*http.Request, error) {
	r, err := http.NewRequest(method, p.Outputs.APIURL+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ":")
		if r.Header.Del(name); value != "" {
			r.Header.Set(name, strings.TrimSpace(value))
		}
	}
	return r, nil
}

// rest asks the REST API, and holds the exchange to the contract.
func (p *platform) rest(t testing.TB, method, path, token, body string, headers ...string) (restAnswer, error) {
	t.Helper()
	return p.restWith(t, plainClient, method, path, token, body, headers...)
}

// restWith is rest with another client.
func (p *platform) restWith(t testing.TB, client *http.Client, method, path, token, body string, headers ...string) (restAnswer, error) {
	t.Helper()
	r, err := p.newCall(method, path, token, body, headers...)
	if err != nil {
		return restAnswer{}, err
	}
	res, err := client.Do(r)
	if err != nil {
		return restAnswer{}, err
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	a := restAnswer{status: res.StatusCode, header: res.Header, body: got}
	if err == nil {
		a.check(t, r, body)
	}
	return a, err
}

// check holds an exchange to the contract, but for what the gateway answers itself.
func (a restAnswer) check(t testing.TB, r *http.Request, body string) {
	t.Helper()
	if a.status < 400 || a.header.Get("Content-Type") == "application/problem+json" {
		openapitest.New(t).Check(t, r, []byte(body), a.status, a.header, a.body)
	}
}

// asked asks as the user and expects a status.
func (u *user) asked(t testing.TB, status int, method, path, body string, headers ...string) restAnswer {
	t.Helper()
	a, err := u.rest(t, method, path, u.tokens.IdToken, body, headers...)
	require.NoError(t, err)
	require.Equal(t, status, a.status, "%s", a.body)
	return a
}

var curlHeader = regexp.MustCompile(`^[A-Za-z0-9-]+:`)

// curl asks the REST API with the real curl, as the user unless an Authorization is among the headers: arguments that look like "Name: value". Any
// other is the body, JSON unless a header says otherwise.
func (u *user) curl(t testing.TB, method, path string, bodyAndHeaders ...string) (restAnswer, error) {
	body, headers := "", []string{"Authorization: Bearer " + u.tokens.IdToken}
	for _, arg := range bodyAndHeaders {
		if curlHeader.MatchString(arg) {
			headers = append(headers, arg)
		} else {
			body = arg
		}
	}
	r, err := u.newCall(method, path, "", body, headers...)
	if err != nil {
		return restAnswer{}, err
	}
	args := []string{"-q", "-sS", "-i", "--noproxy", "*", "--max-time", fmt.Sprint(waitTime.Seconds()), "-w", "\n%{time_total}", "-X", method, r.URL.String()}
	for name, values := range r.Header {
		args = append(args, "-H", name+": "+values[0])
	}
	if body != "" {
		args = append(args, "--data-raw", body)
	}
	out, err := exec.Command("curl", args...).Output()
	if failed := new(exec.ExitError); errors.As(err, &failed) {
		return restAnswer{}, fmt.Errorf("curl: %w: %s", err, failed.Stderr)
	} else if err != nil {
		return restAnswer{}, err
	}
	end := bytes.LastIndexByte(out, '\n')
	res, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(out[:end])), r)
	if err != nil {
		return restAnswer{}, err
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	a := restAnswer{status: res.StatusCode, header: res.Header, body: got, raw: strings.ReplaceAll(string(out[:end]), "\r", ""), took: string(out[end+1:])}
	if err == nil {
		a.check(t, r, body)
	}
	return a, err
}

// webhook is one that a test made.
type webhook struct {
	*user
	id, token string
}

// webhook makes one; without an agent in its settings it starts a new agent.
func (u *user) webhook(t testing.TB, settings vars) *webhook {
	t.Helper()
	all := vars{"name": t.Name()}
	for name, value := range settings {
		all[name] = value
	}
	if all["agent_id"] == nil {
		all["agent_id"] = u.query(t, make_, vars{"input": vars{"name": t.Name()}}).get("createAgent.id")
	}
	body, err := json.Marshal(all)
	require.NoError(t, err)
	a := u.asked(t, http.StatusCreated, http.MethodPost, "/api/webhooks", string(body))
	return &webhook{u, a.get("id"), a.get("token")}
}

// call calls the webhook with its token.
func (w *webhook) call(t testing.TB, body string, headers ...string) (restAnswer, error) {
	t.Helper()
	return w.rest(t, http.MethodPost, "/webhooks/"+w.id, w.token, body, headers...)
}

// started calls the webhook, which must start a run.
func (w *webhook) started(t testing.TB, body string, headers ...string) restAnswer {
	t.Helper()
	a, err := w.call(t, body, headers...)
	require.NoError(t, err)
	require.Equal(t, http.StatusAccepted, a.status, "%s", a.body)
	return a
}

// webhookRun is a run as the REST API shows it.
type webhookRun struct {
	ID              string `json:"run_id"`
	Status          string
	Test            bool
	ThreadID        *string `json:"thread_id"`
	Error           *string
	InputTokens     int             `json:"input_tokens"`
	OutputTokens    int             `json:"output_tokens"`
	CostUSD         *string         `json:"cost_usd"`
	CreatedAt       string          `json:"created_at"`
	StartedAt       *string         `json:"started_at"`
	FinishedAt      *string         `json:"finished_at"`
	ContextSnapshot json.RawMessage `json:"context_snapshot"`
}

// finished polls a run with the webhook's token until it has ended.
func (w *webhook) finished(t testing.TB, id string) (got webhookRun) {
	t.Helper()
	require.NoError(t, until(func() (bool, error) {
		a, err := w.rest(t, http.MethodGet, "/webhooks/"+w.id+"/runs/"+id, w.token, "")
		if err == nil && a.status != http.StatusOK {
			err = errors.New(a.problem())
		}
		if err != nil {
			return false, err
		}
		got = webhookRun{}
		return a.get("status") != "started", json.Unmarshal(a.body, &got)
	}), "run %s", id)
	return got
}

// runs are all of the webhook's, newest first.
func (w *webhook) runs(t testing.TB) (all []webhookRun) {
	t.Helper()
	path := "/api/webhooks/" + w.id + "/runs?limit=100"
	for next := ""; ; {
		var page struct {
			Items []webhookRun
			Next  *string `json:"next_token"`
		}
		require.NoError(t, json.Unmarshal(w.asked(t, http.StatusOK, http.MethodGet, path+next, "").body, &page))
		all = append(all, page.Items...)
		if page.Next == nil {
			return all
		}
		next = "&next_token=" + *page.Next
	}
}

// invocations is the webhook's invocation_count.
func (w *webhook) invocations(t testing.TB) string {
	t.Helper()
	return w.asked(t, http.StatusOK, http.MethodGet, "/api/webhooks/"+w.id, "").get("invocation_count")
}
