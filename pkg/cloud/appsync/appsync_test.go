package appsync_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/agentplatform/agentplatform/pkg/cloud/appsync"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/schema"
)

// request is what a publisher sent.
type request struct {
	Query     string            `json:"query"`
	Variables map[string]string `json:"variables"`
}

// appsync starts a publisher against an API played by answer, which gets every try and its number, from 1.
func start(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, body []byte, try int)) *appsync.Publisher {
	t.Helper()
	var tries atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		answer(w, r, body, int(tries.Add(1)))
	}))
	t.Cleanup(server.Close)
	publisher, err := appsync.New(appsync.Config{
		URL: server.URL, Region: "eu-central-1", FirstDelay: time.Microsecond,
		Credentials: credentials.NewStaticCredentialsProvider("AKID", "SECRET", "SESSION"),
		Clock:       func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
	})
	require.NoError(t, err)
	return publisher
}

// everyKind is one event of each.
var everyKind = []publish.Event{
	publish.NewMessage{TenantID: "t1", ThreadID: "CHAT-1", Message: publish.Message{ID: "m1", ThreadID: "CHAT-1", Role: "assistant", Body: "Hé <b> \u2028 \"you\""}},
	publish.AgentStatus{TenantID: "t1", ThreadID: "CHAT-1", AgentID: "a1", Status: publish.CallingTool},
	publish.ThreadUpdate{TenantID: "t1", ThreadID: "CHAT-1", Thread: publish.Thread{ID: "CHAT-1", Status: "open"}},
	publish.StreamChunk{TenantID: "t1", ThreadID: "CHAT-1", MessageID: "m1", Chunk: "Hé", Done: true},
	publish.AgentActivity{TenantID: "t1", AgentID: "a1", Status: publish.CallingTool},
}

// echo answers as the API does: the mutation's result is the event.
func echo(w http.ResponseWriter, body []byte) {
	var r request
	_ = json.Unmarshal(body, &r)
	fmt.Fprintf(w, `{"data":{"publishThreadEvent":%[1]s,"publishAgentActivity":%[1]s}}`, r.Variables["event"])
}

func TestAppSyncRequestsAreValidSignedAndComplete(t *testing.T) {
	sdl, err := gqlparser.LoadSchema(&ast.Source{Name: "prelude.graphql", Input: schema.Prelude}, &ast.Source{Name: "schema.graphql", Input: schema.SDL})
	require.NoError(t, err)
	var bodies [][]byte
	publisher := start(t, func(w http.ResponseWriter, r *http.Request, body []byte, _ int) {
		bodies = append(bodies, body)
		if r.Method != http.MethodPost || r.URL.Path != "/graphql" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
		}
		requireSignature(t, r, body)
		echo(w, body)
	})
	require.NoError(t, publisher.Publish(t.Context(), everyKind...))
	require.Len(t, bodies, len(everyKind))
	for i, e := range everyKind {
		var r request
		require.NoError(t, json.Unmarshal(bodies[i], &r))
		document, errs := gqlparser.LoadQueryWithRules(sdl, r.Query, rules.NewDefaultRules())
		require.Empty(t, errs)
		require.Len(t, document.Operations, 1)
		field := document.Operations[0].SelectionSet[0].(*ast.Field)
		require.Equal(t, string(e.Address().Topic), field.Name)
		require.Equal(t, field.Name, field.Alias, "AppSync passes on what was selected, under its name")
		raw, err := e.MarshalJSON()
		require.NoError(t, err)
		require.Equal(t, string(raw), r.Variables["event"])
		requireEverything(t, sdl, sdl.Types[field.Definition.Type.Name()], field.SelectionSet)
	}
}

// requireEverything fails unless a selection has every field of its type, at every depth, and of every member of a union.
func requireEverything(t *testing.T, sdl *ast.Schema, definition *ast.Definition, selection ast.SelectionSet) {
	t.Helper()
	fields, fragments := map[string]*ast.Field{}, map[string]*ast.InlineFragment{}
	for _, s := range selection {
		switch s := s.(type) {
		case *ast.Field:
			fields[s.Alias] = s
		case *ast.InlineFragment:
			fragments[s.TypeCondition] = s
		}
	}
	if definition.Kind == ast.Union {
		require.Contains(t, fields, "__typename")
		for _, member := range definition.Types {
			require.Contains(t, fragments, member)
			requireEverything(t, sdl, sdl.Types[member], fragments[member].SelectionSet)
		}
		return
	}
	for _, field := range definition.Fields {
		require.Contains(t, fields, field.Name, "the publisher does not select %s.%s", definition.Name, field.Name)
		if inner := sdl.Types[field.Type.Name()]; inner.IsCompositeType() {
			requireEverything(t, sdl, inner, fields[field.Name].SelectionSet)
		}
	}
}

// requireSignature signs the request once more as AWS documents it and compares.
func requireSignature(t *testing.T, r *http.Request, body []byte) {
	t.Helper()
	const prefix = "AWS4-HMAC-SHA256 Credential=AKID/20260102/eu-central-1/appsync/aws4_request, SignedHeaders="
	got := r.Header.Get("Authorization")
	if len(got) < len(prefix) || got[:len(prefix)] != prefix || r.Header.Get("X-Amz-Date") != "20260102T030405Z" || r.Header.Get("X-Amz-Security-Token") != "SESSION" {
		t.Errorf("signature: %v", r.Header)
	}
	again, _ := http.NewRequest(http.MethodPost, "http://"+r.Host+"/graphql", nil)
	again.Header.Set("Content-Type", "application/json")
	again.ContentLength = int64(len(body))
	sum := sha256.Sum256(body)
	err := v4.NewSigner().SignHTTP(context.Background(), aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET", SessionToken: "SESSION"},
		again, hex.EncodeToString(sum[:]), "appsync", "eu-central-1", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	if err != nil || again.Header.Get("Authorization") != got {
		t.Errorf("signature\n got %s\nwant %s (%v)", got, again.Header.Get("Authorization"), err)
	}
}

func TestAppSyncTriesAgainOnlyWhatIsSafe(t *testing.T) {
	message, chunk := everyKind[0], everyKind[3]
	for _, c := range []struct {
		status, tries int
		event         publish.Event
	}{
		{429, 4, message}, {429, 4, chunk}, {503, 4, chunk},
		{500, 4, message}, {502, 4, message},
		{500, 1, chunk}, // it may have gone out: a chunk must not come twice
		{400, 1, message}, {401, 1, message}, {403, 1, message},
	} {
		var tries atomic.Int32
		publisher := start(t, func(w http.ResponseWriter, _ *http.Request, _ []byte, try int) {
			tries.Store(int32(try))
			w.WriteHeader(c.status)
		})
		require.ErrorContains(t, publisher.Publish(t.Context(), c.event), fmt.Sprint(c.status))
		require.EqualValues(t, c.tries, tries.Load(), "%d for %T", c.status, c.event)
	}
}

func TestAppSyncRecovers(t *testing.T) {
	publisher := start(t, func(w http.ResponseWriter, _ *http.Request, body []byte, try int) {
		if try < 3 {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		echo(w, body)
	})
	require.NoError(t, publisher.Publish(t.Context(), everyKind[3]))
}

func TestAppSyncTellsWhenAnEventWasNotHandedOver(t *testing.T) {
	for _, answer := range []string{
		`{"data":{"publishThreadEvent":null},"errors":[{"errorType":"Unauthorized","message":"Not Authorized"}]}`,
		`{"data":{"publishThreadEvent":{"__typename":"NewMessageEvent"}},"errors":[{"message":"Cannot return null"}]}`,
		`{"data":{"publishThreadEvent":null}}`, `{}`, `[]`, ``, `<html>`,
	} {
		tries := 0
		publisher := start(t, func(w http.ResponseWriter, _ *http.Request, _ []byte, try int) {
			tries = try
			_, _ = io.WriteString(w, answer)
		})
		require.Error(t, publisher.Publish(t.Context(), everyKind[0]), "%s", answer)
		require.Equal(t, 1, tries)
	}
}

func TestAppSyncStopsAtTheFirstFailure(t *testing.T) {
	var sent []string
	publisher := start(t, func(w http.ResponseWriter, _ *http.Request, body []byte, try int) {
		var r request
		_ = json.Unmarshal(body, &r)
		sent = append(sent, r.Variables["event"])
		if try == 2 {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		echo(w, body)
	})
	require.ErrorContains(t, publisher.Publish(t.Context(), everyKind...), "2 of 5")
	require.Len(t, sent, 2)
	require.Error(t, publisher.Publish(t.Context(), publish.StreamChunk{TenantID: "t1"}), "no thread: nobody's event")
	require.Len(t, sent, 2)
}

func TestAppSyncGivesUpWithItsCaller(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	publisher := start(t, func(w http.ResponseWriter, _ *http.Request, _ []byte, _ int) {
		cancel()
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	require.ErrorIs(t, publisher.Publish(ctx, everyKind[0]), context.Canceled)
}

func TestAppSyncRefusesAnIncompleteConfig(t *testing.T) {
	_, err := appsync.New(appsync.Config{URL: "https://x"})
	require.Error(t, err)
}
