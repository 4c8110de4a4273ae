package runtime_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/runtime"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// patience bounds every wait.
const patience = time.Minute

// world is a runtime over HTTP, and a tenant with turns for it.
type world struct {
	pgtest.World
	t      *testing.T
	db     *pgtest.DB
	server *runtime.Server
	url    string
}

func newWorld(t *testing.T, c runtime.Config, m model.Model, to publish.Publisher) *world {
	t.Helper()
	db := pgtest.New(t)
	w := &world{World: db.World(t, "acme"), t: t, db: db}
	c.Runner = turn.NewRunner(db.App, m, to, func(context.Context, string, string) error { return nil })
	w.server = runtime.New(c)
	listener := httptest.NewServer(w.server)
	w.url = listener.URL
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, w.server.Stop(ctx))
		listener.Close()
	})
	return w
}

// ask is a new thread with one message; it gives the turn that is to answer.
func (w *world) ask(body string) (th thread.Thread, turnID string) {
	w.t.Helper()
	require.NoError(w.t, w.db.App.InTenant(w.t.Context(), w.TenantID, func(tx pgx.Tx) (err error) {
		if th, err = thread.Create(w.t.Context(), tx, w.TenantID, thread.New{}); err != nil {
			return err
		}
		asked, err := turn.Request(w.t.Context(), tx, w.TenantID, turn.Ask{ThreadID: th.ID, Body: body, OnBusy: turn.Enqueue, UserID: w.UserID})
		turnID = asked.TurnID
		return err
	}))
	return th, turnID
}

func (w *world) turn(id string) turn.Turn {
	w.t.Helper()
	got, err := turn.Get(w.t.Context(), w.db.App.In(w.TenantID), id)
	require.NoError(w.t, err)
	return got
}

// post is a request as it comes; the body of its answer is closed with the test.
func (w *world) post(ctx context.Context, path, contentType, body string) *http.Response {
	w.t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+path, strings.NewReader(body))
	require.NoError(w.t, err)
	request.Header.Set("Content-Type", contentType)
	response, err := http.DefaultClient.Do(request)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { response.Body.Close() })
	return response
}

// invocation is a turn's event stream.
type invocation struct {
	t     *testing.T
	lines *bufio.Scanner
	leave context.CancelFunc
}

func (w *world) invoke(turnID string) *invocation {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	w.t.Cleanup(cancel)
	body, err := json.Marshal(turn.Dispatch{TenantID: w.TenantID, TurnID: turnID})
	require.NoError(w.t, err)
	response := w.post(ctx, "/invocations", "application/json", string(body))
	require.Equal(w.t, http.StatusOK, response.StatusCode)
	require.Equal(w.t, "text/event-stream", response.Header.Get("Content-Type"))
	return &invocation{w.t, bufio.NewScanner(response.Body), cancel}
}

// next is the next event; io.EOF as the name at the end.
func (i *invocation) next() (name string, data map[string]any) {
	i.t.Helper()
	for i.lines.Scan() {
		field, value, _ := strings.Cut(i.lines.Text(), ": ")
		switch field {
		case "":
			return name, data
		case "event":
			name = value
		case "data":
			require.NoError(i.t, json.Unmarshal([]byte(value), &data))
		}
	}
	require.NoError(i.t, i.lines.Err())
	return io.EOF.Error(), nil
}

// rest are the events that are left: their names, and the text that was streamed.
func (i *invocation) rest() (names []string, text string, last map[string]any) {
	i.t.Helper()
	for {
		name, data := i.next()
		if name == io.EOF.Error() {
			return names, text, last
		}
		if data["__typename"] == "StreamChunkEvent" {
			text += data["chunk"].(string)
		}
		names, last = append(names, name), data
	}
}

type ping struct {
	Status  string `json:"status"`
	Changed int64  `json:"time_of_last_update"`
}

func (w *world) ping() (p ping) {
	w.t.Helper()
	response, err := http.Get(w.url + "/ping")
	require.NoError(w.t, err)
	defer response.Body.Close()
	require.Equal(w.t, http.StatusOK, response.StatusCode)
	require.Equal(w.t, "application/json", response.Header.Get("Content-Type"))
	require.NoError(w.t, json.NewDecoder(response.Body).Decode(&p))
	return p
}

// gate is a model whose answer waits in the middle.
type gate struct {
	reached chan struct{} // a call is in the middle of its answer
	open    chan struct{} // closed: it goes on
}

func newGate() *gate { return &gate{make(chan struct{}, 16), make(chan struct{})} }

func (g *gate) Converse(ctx context.Context, _ model.Request, s model.Stream) (model.Response, error) {
	s.Text("Good ")
	g.reached <- struct{}{}
	select {
	case <-g.open:
	case <-ctx.Done():
		return model.Response{}, ctx.Err()
	}
	s.Text("morning.\n\"")
	return model.Response{Blocks: []model.Block{{Text: "Good morning.\n\""}}, StopReason: model.StopEndTurn}, nil
}

func (g *gate) wait(t *testing.T) {
	t.Helper()
	select {
	case <-g.reached:
	case <-time.After(patience):
		t.Fatal("the model was not asked")
	}
}
