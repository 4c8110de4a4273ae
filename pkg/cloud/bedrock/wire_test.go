package bedrock

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agentplatform/agentplatform/pkg/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wire is a hand-written Bedrock for what the offline model never does. It keeps the last request.
type wire struct {
	client *Client
	header http.Header
	body   []byte
}

// speak starts a server that answers every call with write.
func speak(t *testing.T, c Config, write func(w http.ResponseWriter, r *http.Request)) *wire {
	t.Helper()
	var s wire
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.header = r.Header
		var err error
		if s.body, err = io.ReadAll(r.Body); err != nil {
			t.Error(err)
		}
		write(w, r)
	}))
	c.Region, c.Endpoint = "eu-central-1", server.URL
	client, err := New(c)
	require.NoError(t, err)
	t.Cleanup(func() {
		client.Close()
		server.Close()
	})
	s.client = client
	return &s
}

// events writes event stream messages, each a name and its JSON.
func events(w http.ResponseWriter, pairs ...string) {
	w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
	for i := 0; i < len(pairs); i += 2 {
		frame(w, "event", ":event-type", pairs[i], pairs[i+1])
	}
}

func frame(w http.ResponseWriter, kind, header, name, payload string) {
	_ = eventstream.NewEncoder().Encode(w, eventstream.Message{Payload: []byte(payload), Headers: eventstream.Headers{
		{Name: ":message-type", Value: eventstream.StringValue(kind)},
		{Name: header, Value: eventstream.StringValue(name)},
		{Name: ":content-type", Value: eventstream.StringValue("application/json")},
	}})
}

var hello = model.Request{ModelID: "m", Messages: []model.Message{{Role: model.User, Blocks: []model.Block{{Text: "hi"}}}}}

const usageEvent = `{"usage":{"inputTokens":10,"outputTokens":2,"totalTokens":12,"cacheReadInputTokens":3,"cacheWriteInputTokens":4}}`

func reasonOf(t *testing.T, err error) *model.Error {
	t.Helper()
	var e *model.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, model.Failure(e.Reason, false, nil).Message, e.Message)
	require.NotEmpty(t, e.Message)
	return e
}
