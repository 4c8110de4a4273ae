package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// outputs is what GET /local/outputs.json says.
type outputs struct {
	Region      string `json:"region"`
	APIURL      string `json:"api_url"`
	AppSyncURL  string `json:"appsync_url"`
	RealtimeURL string `json:"realtime_url"`
	WebAppURL   string `json:"web_app_url"`
	UserPoolID  string `json:"user_pool_id"`
	ClientID    string `json:"client_id"`
	CAFile      string `json:"ca_file"`

	DatabaseReaderURL string `json:"database_reader_url"`
	AnchorPublicKey   string `json:"anchor_public_key_file"`
	AnchorOrigin      string `json:"anchor_origin"`
}

// plainClient keeps no connection: platforms come and go, their ports too.
var plainClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: waitTime}

func getJSON(ctx context.Context, url string, to any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := plainClient.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return errors.New(res.Status)
	}
	return json.NewDecoder(res.Body).Decode(to)
}

// tlsClient trusts the platform's CA and nothing else.
func (p *platform) tlsClient(t testing.TB) *http.Client {
	t.Helper()
	ca, err := os.ReadFile(p.Outputs.CAFile)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(ca))
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots}}, Timeout: waitTime}
}

// tokens are those of a sign-in.
type tokens struct{ AccessToken, IdToken, RefreshToken string }

// signInErr signs in over the Cognito wire API; flow is USER_PASSWORD_AUTH or REFRESH_TOKEN_AUTH with its parameters.
func (p *platform) signInErr(flow string, parameters map[string]string) (tokens, error) {
	var answer struct {
		AuthenticationResult tokens
		Type                 string `json:"__type"`
		Message              string `json:"message"`
	}
	body, err := json.Marshal(map[string]any{"AuthFlow": flow, "ClientId": p.Outputs.ClientID, "AuthParameters": parameters})
	if err != nil {
		return tokens{}, err
	}
	r, err := http.NewRequest(http.MethodPost, p.Outputs.APIURL+"/", bytes.NewReader(body))
	if err != nil {
		return tokens{}, err
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	r.Header.Set("X-Amz-Target", "AWSCognitoIdentityProviderService.InitiateAuth")
	res, err := plainClient.Do(r)
	if err != nil {
		return tokens{}, err
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return tokens{}, err
	}
	if answer.Type != "" {
		return tokens{}, fmt.Errorf("%s: %s", answer.Type, answer.Message)
	}
	return answer.AuthenticationResult, nil
}

// user is somebody who has signed in.
type user struct {
	*platform
	email  string
	tokens tokens
}

// as signs in; a name alone is somebody of the seeded tenants: alice, max, ops (acme), bob (globex).
func (p *platform) as(t testing.TB, name string) *user {
	t.Helper()
	email := address(name)
	got, err := p.signInErr("USER_PASSWORD_AUTH", map[string]string{"USERNAME": email, "PASSWORD": p.Password})
	require.NoError(t, err)
	return &user{platform: p, email: email, tokens: got}
}

func address(name string) string {
	switch {
	case strings.Contains(name, "@"):
		return name
	case name == "bob":
		return "bob@globex.test"
	}
	return name + "@acme.test"
}

// answer is what POST /graphql answers.
type answer struct {
	Status int
	Data   json.RawMessage `json:"data"`
	Errors []struct {
		Message   string
		ErrorType string
		Locations []struct{ Line, Column int }
		Path      []any
	} `json:"errors"`
	Raw string
}

// problem is the first error as "STATUS TYPE message"; "" when there is none.
func (a answer) problem() string {
	if len(a.Errors) == 0 {
		return ""
	}
	return fmt.Sprintf("%d %s %s", a.Status, a.Errors[0].ErrorType, a.Errors[0].Message)
}

// get is a member of data by its path, for example "thread.messages.items.0.body"; text as it is, all else as JSON, "" when there is none.
func (a answer) get(path string) string { return member(a.Data, path) }

func member(raw json.RawMessage, path string) string {
	for _, name := range strings.Split(path, ".") {
		if index, err := strconv.Atoi(name); err == nil {
			var list []json.RawMessage
			if json.Unmarshal(raw, &list) != nil || index >= len(list) {
				return ""
			}
			raw = list[index]
			continue
		}
		var object map[string]json.RawMessage
		if json.Unmarshal(raw, &object) != nil {
			return ""
		}
		raw = object[name]
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// post asks GraphQL at url with any body.
func post(client *http.Client, url, token, contentType string, body io.Reader) (answer, error) {
	r, err := http.NewRequest(http.MethodPost, url, body)
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("Content-Type", contentType)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	return read(res)
}

func read(res *http.Response) (answer, error) {
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return answer{}, err
	}
	a := answer{Status: res.StatusCode, Raw: string(raw)}
	if err := json.Unmarshal(raw, &a); err != nil {
		return a, fmt.Errorf("%s: not JSON: %q", res.Status, raw)
	}
	return a, nil
}

// vars are a query's variables.
type vars = map[string]any

// ask sends a query to the plain port and returns the answer, errors and all.
func (u *user) ask(query string, v vars) (answer, error) {
	body, err := json.Marshal(map[string]any{"query": query, "variables": v})
	if err != nil {
		return answer{}, err
	}
	return post(plainClient, u.Outputs.APIURL+"/graphql", u.tokens.IdToken, "application/json", bytes.NewReader(body))
}

// query is ask where an error is not expected.
func (u *user) query(t testing.TB, query string, v vars) answer {
	t.Helper()
	a, err := u.ask(query, v)
	require.NoError(t, err)
	require.Empty(t, a.Errors, a.Raw)
	require.Equal(t, http.StatusOK, a.Status)
	return a
}

// open opens a thread.
func (u *user) open(t testing.TB) string {
	t.Helper()
	return u.query(t, `mutation { createThread(input: {}) { id } }`, nil).get("createThread.id")
}

// foreign is a thread of another tenant, whose id no thread of the tests' tenant has: threads are counted for each tenant.
func (p *platform) foreign(t testing.TB) string {
	t.Helper()
	p.superuser(t, `insert into thread_counters (tenant_id, prefix, last_number) select id, 'EMAIL', 1000000 from tenants where slug = 'globex'
		on conflict (tenant_id, prefix) do update set last_number = greatest(thread_counters.last_number, 1000000)`)
	return p.as(t, "bob").query(t, `mutation { createThread(input: {channel: EMAIL}) { id } }`, nil).get("createThread.id")
}

const sendDocument = `mutation ($input: SendMessageInput!) { sendMessage(input: $input) { id turnId threadId role body } }`

// send sends a message of some lines and gives the id of the turn that will answer it.
func (u *user) send(t testing.TB, thread string, lines ...string) string {
	t.Helper()
	return u.query(t, sendDocument, vars{"input": vars{"threadId": thread, "body": strings.Join(lines, "\n")}}).get("sendMessage.turnId")
}

// turn is a turn's record.
type turn struct {
	ID, Status, ThreadID string
	Attempts             int
	Error                *string
}

const turnFields = `id status threadId agentId model inputTokens outputTokens costUsd error attempts queuedAt startedAt finishedAt
	phases { name startedAt finishedAt durationMs } toolOutcomes { toolCallId name status output error durationMs }
	guardrailDecisions { stage } evaluatorScores { evaluator }`

// ended waits until a turn has ended.
func (u *user) ended(t testing.TB, id string) turn {
	t.Helper()
	got, _, err := u.awaitTurn(id)
	require.NoError(t, err)
	return got
}

// awaitTurn waits until a turn has ended; it also gives the whole record.
func (u *user) awaitTurn(id string) (got turn, record json.RawMessage, err error) {
	err = until(func() (bool, error) {
		a, err := u.ask(`query ($id: ID!) { turn(id: $id) { `+turnFields+` } }`, vars{"id": id})
		if err == nil && len(a.Errors) > 0 {
			err = errors.New(a.problem())
		}
		if err != nil {
			return false, err
		}
		record = json.RawMessage(a.get("turn"))
		if err := json.Unmarshal(record, &got); err != nil {
			return false, err
		}
		return got.Status != "queued" && got.Status != "running", nil
	})
	if err != nil {
		err = fmt.Errorf("turn %s, last seen %s: %w", id, got.Status, err)
	}
	return got, record, err
}

// message is a message of a thread.
type message struct{ ID, Role, Body, TurnID string }

// messages are a thread's, oldest first, up to 100.
func (u *user) messages(t testing.TB, thread string) (list []message) {
	t.Helper()
	a := u.query(t, `query ($id: ID!) { getThread(id: $id) { messages(limit: 100) { items { id role body turnId } } } }`, vars{"id": thread})
	require.NoError(t, json.Unmarshal([]byte(a.get("getThread.messages.items")), &list))
	return list
}

// until looks again and again until it is done.
func until(done func() (bool, error)) error {
	deadline := time.After(waitTime)
	tick := time.NewTicker(15 * time.Millisecond)
	defer tick.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-deadline:
			return errors.New("not in time")
		}
	}
}
