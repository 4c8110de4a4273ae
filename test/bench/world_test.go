// Package bench measures the platform as a whole: the public API over HTTP and WebSocket, everything committed with fsync on, row-level
// security on. Each figure stands beside a floor measured in the same run on the same database: what the bare SQL costs.
//
//	make bench
package bench

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"github.com/agentplatform/agentplatform/functions"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/local"
	"github.com/agentplatform/agentplatform/pkg/local/sandbox"
	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/schema"
)

// world is the platform that all benchmarks of a run share.
type world struct {
	platform *local.Platform
	dir      string
	token    string
	client   *http.Client
	instant  *instant
	gate     gate
	dispatch lambda.Handler // the platform's dispatch-turn
}

var shared struct {
	once sync.Once
	w    *world
	err  error
}

func TestMain(m *testing.M) {
	sandbox.Worker()
	debug.SetGCPercent(local.GCPercent)
	slog.SetDefault(slog.New(slog.DiscardHandler)) // lines of the log would stand among the figures
	code := m.Run()
	if w := shared.w; w != nil {
		if err := w.platform.Stop(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		_ = os.RemoveAll(w.dir)
	}
	os.Exit(code)
}

// gate is where dispatched turns wait while it is shut.
type gate struct {
	mu   sync.Mutex
	open chan struct{} // closed while the gate is open
}

func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = make(chan struct{})
}

func (g *gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.open)
}

// table has turns pass the gate.
func (w *world) table(all map[string]handler.Constructor) map[string]handler.Constructor {
	gated := maps.Clone(all)
	gated["dispatch-turn"] = func(env *handler.Env) lambda.Handler {
		w.dispatch = all["dispatch-turn"](env)
		return gatedTurn{&w.gate, w.dispatch}
	}
	return gated
}

type gatedTurn struct {
	gate *gate
	lambda.Handler
}

func (t gatedTurn) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	t.gate.mu.Lock()
	open := t.gate.open
	t.gate.mu.Unlock()
	<-open
	return t.Handler.Invoke(ctx, payload)
}

func open(b *testing.B) *world {
	b.Helper()
	shared.once.Do(func() { shared.w, shared.err = start() })
	if shared.err != nil {
		b.Fatal(shared.err)
	}
	return shared.w
}

func start() (*world, error) {
	rows, err := manifest.Parse(schema.Routes)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	w := &world{dir: dir, gate: gate{open: closed()}, instant: &instant{first: map[string]time.Time{}}, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}}
	if w.platform, err = local.Start(context.Background(), local.Config{Dir: dir, Table: w.table(functions.Table), Rows: rows, Model: local.Offline, Converse: w.instant, DatabaseURL: os.Getenv("BENCH_DATABASE_URL")}); err != nil {
		return nil, err
	}
	var in struct {
		AuthenticationResult struct{ IdToken string }
	}
	body := fmt.Sprintf(`{"AuthFlow":"USER_PASSWORD_AUTH","ClientId":%q,"AuthParameters":{"USERNAME":"alice@acme.test","PASSWORD":%q}}`, w.platform.Outputs.ClientID, w.platform.Password)
	raw, err := w.send(w.platform.Outputs.APIURL+"/", http.Header{"Content-Type": {"application/x-amz-json-1.1"}, "X-Amz-Target": {"AWSCognitoIdentityProviderService.InitiateAuth"}}, []byte(body))
	if err != nil {
		return nil, err
	}
	err = json.Unmarshal(raw, &in)
	w.token = in.AuthenticationResult.IdToken
	return w, err
}

// send is an exchange that must be answered with 200.
func (w *world) send(url string, header http.Header, body []byte) ([]byte, error) {
	raw, status, err := w.exchange(url, header, body)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%d: %s", status, raw)
	}
	return raw, err
}

func (w *world) exchange(url string, header http.Header, body []byte) (raw []byte, status int, err error) {
	r, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, 0, err
	}
	r.Header = header
	res, err := w.client.Do(r)
	if err != nil {
		return nil, 0, err
	}
	defer res.Body.Close()
	raw, err = io.ReadAll(res.Body)
	return raw, res.StatusCode, err
}

// query asks over HTTP; an error in the answer is an error.
func (w *world) query(body []byte, data any) error {
	raw, err := w.send(w.platform.Outputs.APIURL+"/graphql", http.Header{"Content-Type": {"application/json"}, "Authorization": {w.token}}, body)
	if err != nil {
		return err
	}
	if bytes.Contains(raw, []byte(`"errorType":`)) { // the client's own work must not drown the platform's
		return fmt.Errorf("%s", raw)
	}
	if data == nil {
		return nil
	}
	return json.Unmarshal(raw, &struct{ Data any }{data})
}

func request(query string, variables map[string]any) []byte {
	b, _ := json.Marshal(map[string]any{"query": query, "variables": variables})
	return b
}

func (w *world) openThread() (string, error) {
	var out struct{ CreateThread struct{ ID string } }
	err := w.query(request(`mutation { createThread(input: {}) { id } }`, nil), &out)
	return out.CreateThread.ID, err
}

// frame is a message of the real-time protocol.
type frame struct {
	ID      string          `json:"id,omitempty"`
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// subscribe listens to threads until ctx ends, on as many sockets as it takes: one carries 100 subscriptions.
func (w *world) subscribe(ctx context.Context, threads []string, selection string, each func(raw json.RawMessage)) error {
	for some := range slices.Chunk(threads, 100) {
		if err := w.socket(ctx, some, selection, each); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) socket(ctx context.Context, threads []string, selection string, each func(raw json.RawMessage)) error {
	auth, _ := json.Marshal(map[string]string{"Authorization": w.token, "host": "localhost"})
	conn, _, err := websocket.Dial(ctx, "ws"+w.platform.Outputs.APIURL[len("http"):]+"/graphql", &websocket.DialOptions{
		Subprotocols: []string{"graphql-ws", "header-" + base64.RawURLEncoding.EncodeToString(auth)}})
	if err != nil {
		return err
	}
	if err := wsjson.Write(ctx, conn, frame{Type: "connection_init"}); err != nil {
		return err
	}
	for _, thread := range threads {
		data := string(request(`subscription ($t: ID!) { onThreadEvent(threadId: $t) { `+selection+` } }`, map[string]any{"t": thread}))
		payload, _ := json.Marshal(map[string]any{"data": data, "extensions": map[string]any{"authorization": json.RawMessage(auth)}})
		if err := wsjson.Write(ctx, conn, frame{ID: thread, Type: "start", Payload: payload}); err != nil {
			return err
		}
	}
	started := make(chan error, len(threads))
	go func() {
		defer conn.CloseNow()
		for {
			var f frame
			if err := wsjson.Read(ctx, conn, &f); err != nil {
				return
			}
			switch f.Type {
			case "start_ack":
				started <- nil
			case "error":
				started <- fmt.Errorf("%s", f.Payload)
			case "data":
				each(f.Payload)
			}
		}
	}()
	for range threads {
		if err := <-started; err != nil {
			return err
		}
	}
	return nil
}

// instant is a model that costs nothing, so that what is measured is the platform.
type instant struct {
	mu    sync.Mutex
	first map[string]time.Time // by the newest user message: when its first token was given out
}

func (m *instant) Converse(_ context.Context, r model.Request, s model.Stream) (model.Response, error) {
	if uses := tools(r.Messages); len(uses) > 0 {
		return model.Response{Blocks: uses, StopReason: model.StopToolUse, Usage: model.Usage{InputTokens: 20, OutputTokens: 6}}, nil
	}
	question := r.Messages[len(r.Messages)-1].Blocks[0].Text
	m.mu.Lock()
	m.first[question] = time.Now()
	m.mu.Unlock()
	if s != nil { // nobody listens to a summary
		s.Text("All is well")
		s.Text(", thank you.")
	}
	return model.Response{Blocks: []model.Block{{Text: "All is well, thank you."}}, StopReason: model.StopEndTurn, Usage: model.Usage{InputTokens: 20, OutputTokens: 6}}, nil
}

// percentile is the p-th percentile in milliseconds.
func percentile(d []time.Duration, p float64) float64 {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return float64(d[min(len(d)-1, int(p/100*float64(len(d))))].Microseconds()) / 1000
}
