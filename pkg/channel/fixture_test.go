package channel_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/channel"
	"github.com/agentplatform/agentplatform/pkg/egress"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/provider"
	"github.com/agentplatform/agentplatform/pkg/text"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

// now is when deliveries come in, unless a test is about time.
var now = time.Unix(1_700_000_000, 0)

func fixture(t testing.TB, path string) []byte {
	t.Helper()
	body, err := os.ReadFile("testdata/" + path)
	require.NoError(t, err)
	return body
}

// changed is a fixture with parts of it replaced; each part must be there. White space between members means nothing.
func changed(t testing.TB, path string, oldnew ...string) []byte {
	t.Helper()
	tight := strings.NewReplacer(`": `, `":`, `, "`, `,"`)
	s := text.CompactJSON(string(fixture(t, path)))
	for i := 0; i < len(oldnew); i += 2 {
		old := tight.Replace(oldnew[i])
		require.Contains(t, s, old)
		s = strings.ReplaceAll(s, old, tight.Replace(oldnew[i+1]))
	}
	return []byte(s)
}

func of(t testing.TB, name string) channel.Channel {
	t.Helper()
	c, ok := channel.Of(name)
	require.True(t, ok)
	return c
}

// config is a configuration as it is stored.
func config(t testing.TB, name, given string) channel.Config {
	t.Helper()
	stored, err := channel.Check(name, json.RawMessage(given))
	require.NoError(t, err)
	c, err := channel.ParseConfig(stored)
	require.NoError(t, err)
	return c
}

// inbound is a delivery with headers in pairs.
func inbound(body []byte, headers ...string) channel.Inbound {
	h := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return channel.Inbound{Header: h.Get, Body: body, Now: now}
}

func client(t testing.TB) *http.Client {
	c := egress.New(egress.Config{Loopback: true})
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// invalid is what cannot be understood.
func invalid(t testing.TB, err error, says string) {
	t.Helper()
	var f *fault.Error
	require.ErrorAs(t, err, &f)
	require.Equal(t, fault.ValidationError, f.Type)
	require.Contains(t, f.Message, says)
}

// fails is a call that came to nothing.
func fails(t testing.TB, err error, kind provider.Kind, says string) provider.Error {
	t.Helper()
	var e *provider.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, kind, e.Kind, e.Reason)
	require.Contains(t, e.Reason, says)
	require.NotContains(t, e.Reason, "http://", "no URL is told")
	return *e
}

// sound is what holds of whatever is read.
func sound(t testing.TB, e channel.Event, err error) {
	t.Helper()
	require.LessOrEqual(t, len(e.ID), 200)
	require.LessOrEqual(t, len(e.Kind), 200)
	plain(t, e.ID, e.Kind)
	if err != nil {
		invalid(t, err, "")
		require.Less(t, len(err.Error()), 1000)
		require.True(t, utf8.ValidString(err.Error()))
		require.Nil(t, e.Said)
		require.Nil(t, e.Answer)
		require.Empty(t, e.Held)
		return
	}
	if e.Held != "" {
		plain(t, e.Held)
		require.Less(t, len(e.Held), 200)
		require.Nil(t, e.Answer)
		require.Nil(t, e.Said)
	}
	if e.Answer != nil {
		require.True(t, json.Valid(e.Answer.Body))
		require.Less(t, len(e.Answer.Body), 32<<10)
		require.Nil(t, e.Said)
	}
	s := e.Said
	if s == nil {
		return
	}
	require.NotEmpty(t, e.ID)
	require.NotEmpty(t, s.Key)
	require.NotEmpty(t, strings.TrimSpace(s.Body))
	require.LessOrEqual(t, len(s.Body), thread.MaxBody)
	for _, id := range []string{s.Key, s.MessageKey, s.Sender.ID, s.Sender.Name} {
		require.LessOrEqual(t, len(id), 1300)
	}
	plain(t, s.Key, s.MessageKey, s.Body, s.Sender.ID, s.Sender.Name)
	require.True(t, json.Valid(s.Address))
	require.LessOrEqual(t, len(s.Address), 2000)
	metadata, err := json.Marshal(s.Metadata)
	require.NoError(t, err)
	if s.Metadata == nil {
		metadata = []byte("{}")
	}
	require.NoError(t, thread.Check(s.Title, new(string(metadata))))
}

// plain is text that the database can hold.
func plain(t testing.TB, all ...string) {
	t.Helper()
	for _, s := range all {
		require.True(t, utf8.ValidString(s) && !strings.ContainsRune(s, 0), "%q", s)
	}
}

func readAll(r *http.Request) ([]byte, error) { return io.ReadAll(io.LimitReader(r.Body, 1<<20)) }
