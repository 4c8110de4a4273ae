package integration_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/channel"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/integration"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

// desk takes in what is delivered to one integration.
type desk struct {
	*world
	integration integration.Integration
	receiver    *integration.Receiver
}

func newDesk(t testing.TB) *desk {
	w := newWorld(t)
	return w.desk(w.create(w.generic()))
}

func (w *world) desk(i integration.Integration) *desk {
	return &desk{w, i, integration.NewReceiver(w.db.App, integration.NewSecrets(w.store))}
}

// signed is a delivery as a generic sender signs it.
func signed(secret, id string, at time.Time, body []byte) channel.Inbound {
	seconds := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(seconds + "."))
	mac.Write(body)
	h := http.Header{}
	h.Set("X-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	h.Set("X-Signature-Timestamp", seconds)
	h.Set("X-Delivery-Id", id)
	return channel.Inbound{Header: h.Get, Body: body, Now: time.Now()}
}

type said map[string]any

func (s said) body() []byte {
	b, _ := json.Marshal(map[string]any(s))
	return b
}

func (d *desk) receive(in channel.Inbound) (integration.Received, error) {
	return d.receiver.Receive(d.t.Context(), d.integration.ID, in, nil)
}

// deliver hands over a generic sender's message under a delivery id.
func (d *desk) deliver(id string, s said) (integration.Received, error) {
	return d.receive(signed(signing, id, time.Now(), s.body()))
}

func (d *desk) delivered(id string, s said) integration.Received {
	d.t.Helper()
	got, err := d.deliver(id, s)
	require.NoError(d.t, err)
	return got
}

func hello(conversation, message string) said {
	return said{"conversation": conversation, "message": message, "sender": map[string]string{"id": "c4", "name": "Grace"}}
}

// together runs n calls that all wait for one another to begin.
func together[T any](n int, call func(i int) T) []T {
	out := make([]T, n)
	var all sync.WaitGroup
	barrier := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-barrier
			out[i] = call(i)
		})
	}
	close(barrier)
	all.Wait()
	return out
}

func (w *world) messages(threadID string) []thread.Message {
	w.t.Helper()
	th, err := thread.Get(w.t.Context(), w.db.App.In(w.TenantID), threadID)
	require.NoError(w.t, err)
	all, err := thread.Messages(w.t.Context(), w.db.App.In(w.TenantID), []thread.Ref{{ID: th.ID, UUID: th.UUID}}, thread.OldestFirst, nil, 1000)
	require.NoError(w.t, err)
	return all[th.UUID]
}

// outcomes is how many deliveries had each outcome.
func (w *world) outcomes() map[integration.Outcome]int {
	w.t.Helper()
	all, err := integration.Deliveries(w.t.Context(), w.db.App.In(w.TenantID), integration.DeliveryFilter{}, nil, 10_000)
	require.NoError(w.t, err)
	out := map[integration.Outcome]int{}
	for _, d := range all {
		out[d.Outcome]++
	}
	return out
}

func (w *world) newest() integration.Delivery {
	w.t.Helper()
	all, err := integration.Deliveries(w.t.Context(), w.db.App.In(w.TenantID), integration.DeliveryFilter{}, nil, 1)
	require.NoError(w.t, err)
	require.Len(w.t, all, 1)
	return all[0]
}

// rows counts threads, messages and turns.
func (w *world) rows() [3]int {
	return [3]int{query[int](w, `select count(*) from threads`), query[int](w, `select count(*) from messages`), query[int](w, `select count(*) from thread_turns`)}
}

// answers writes what the agent says to a turn, as the turn's own transaction does; "" fails it.
func (w *world) answers(turnID, body string) {
	w.t.Helper()
	if body == "" {
		w.exec(`update thread_turns set status = 'failed', error = 'a secret reason', lease_until = null, finished_at = clock_timestamp() where id = $1`, turnID)
		return
	}
	w.exec(`with t as (update thread_turns set status = 'succeeded', lease_until = null, finished_at = clock_timestamp() where id = $1 returning *),
			th as (update threads x set message_count = message_count + 1 from t where x.uuid = t.thread_uuid returning x.uuid, x.message_count)
		insert into messages (tenant_id, id, thread_uuid, position, role, body, turn_id, turn_number)
		select t.tenant_id, $2, t.thread_uuid, th.message_count, 'assistant', $3, t.id, t.number from t, th`, turnID, ident.New(), body)
}

// inbox is where a generic integration's answers are posted.
type inbox struct {
	*httptest.Server
	mutex sync.Mutex
	got   []post
	say   func(n int, out http.ResponseWriter, r *http.Request) // how the n-th request is answered, from 1; nil: 200
	taken map[string]bool                                       // ids, as a receiver remembers them
}

// post is one answer that came.
type post struct {
	ID, Conversation, Message string
	ThreadID                  string `json:"thread_id"`
	Failed                    bool
}

func newInbox(t testing.TB) *inbox {
	in := &inbox{taken: map[string]bool{}}
	asked := 0
	in.Server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var p post
		mac := hmac.New(sha256.New, []byte(signing))
		mac.Write([]byte("reply." + r.Header.Get("X-Signature-Timestamp") + "."))
		mac.Write(body)
		if err != nil || json.Unmarshal(body, &p) != nil || r.Header.Get("X-Signature-256") != "sha256="+hex.EncodeToString(mac.Sum(nil)) || r.Header.Get("X-Delivery-Id") != p.ID {
			out.WriteHeader(http.StatusUnauthorized)
			return
		}
		in.mutex.Lock()
		asked++
		n, say := asked, in.say
		in.mutex.Unlock()
		if say != nil {
			recorder := &status{ResponseWriter: out}
			say(n, recorder, r)
			if recorder.code >= 300 {
				return
			}
		}
		in.mutex.Lock()
		defer in.mutex.Unlock()
		if !in.taken[p.ID] {
			in.taken[p.ID] = true
			in.got = append(in.got, p)
		}
	}))
	t.Cleanup(in.Close)
	return in
}

type status struct {
	http.ResponseWriter
	code int
}

func (s *status) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}

func (in *inbox) posts() []post {
	in.mutex.Lock()
	defer in.mutex.Unlock()
	return append([]post(nil), in.got...)
}

func (in *inbox) answers(say func(n int, out http.ResponseWriter, r *http.Request)) {
	in.mutex.Lock()
	defer in.mutex.Unlock()
	in.say = say
}

// exits ends the goroutine at a point, as a killed process does.
func exits(point string) func(at string) {
	return func(at string) {
		if at == point {
			runtime.Goexit()
		}
	}
}

// killed posts a thread's replies as a process does that is killed at a point.
func (w *world) killed(task integration.ReplyTask, point string) {
	w.t.Helper()
	courier, died, over := w.courier(), true, make(chan struct{})
	courier.Signal = exits(point)
	go func() {
		defer close(over)
		_ = courier.Deliver(w.t.Context(), task)
		died = false
	}()
	<-over
	require.True(w.t, died, "nothing came to %q", point)
}
