package thread_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	functions "github.com/agentplatform/agentplatform/functions/thread"
	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/callback"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type args = map[string]any

type world struct {
	pgtest.World
	t      *testing.T
	p      *handlertest.Platform
	caller tenant.Claims
}

func open(t *testing.T, p *handlertest.Platform, slug string) *world {
	w := p.DB.World(t, slug)
	return &world{w, t, p, handlertest.Claims(w, tenant.Member)}
}

func (w *world) create(input args) (thread.Thread, *fault.Error) {
	w.t.Helper()
	return handlertest.Call[thread.Thread](w.t, w.p, "create-thread", functions.CreateThread, w.caller, args{"input": input})
}

func (w *world) thread() thread.Thread {
	w.t.Helper()
	th, err := w.create(args{})
	require.Nil(w.t, err)
	return th
}

func (w *world) send(input args) (thread.Message, *fault.Error) {
	w.t.Helper()
	return handlertest.Call[thread.Message](w.t, w.p, "send-message", functions.SendMessage, w.caller, args{"input": input})
}

func (w *world) update(id string, input args) (thread.Thread, *fault.Error) {
	w.t.Helper()
	return handlertest.Call[thread.Thread](w.t, w.p, "update-thread", functions.UpdateThread, w.caller, args{"id": id, "input": input})
}

func (w *world) get(id string) (thread.Thread, *fault.Error) {
	w.t.Helper()
	return handlertest.Call[thread.Thread](w.t, w.p, "get-thread", functions.GetThread, w.caller, args{"id": id})
}

func TestCreateThread(t *testing.T) {
	p := handlertest.New(t)
	w := open(t, p, "acme")
	th, err := w.create(args{"title": "Hello", "metadata": `{"b": 1, "a": "ü"}`})
	require.Nil(t, err)
	require.Equal(t, "CHAT-1", th.ID)
	require.True(t, ident.Valid(th.UUID))
	require.Equal(t, thread.Open, th.Status)
	require.Equal(t, w.AgentID, th.AgentID) // the default space's
	require.JSONEq(t, `{"a": "ü", "b": 1}`, *th.Metadata)
	got, err := w.get("CHAT-1")
	require.Nil(t, err)
	require.Equal(t, th, got)

	auto, err := w.create(args{"channel": "AUTO", "agentId": w.AgentID})
	require.Nil(t, err)
	require.Equal(t, "AUTO-1", auto.ID)
	require.Equal(t, "CHAT-2", w.thread().ID)

	for name, input := range map[string]args{
		"metadata not JSON":        {"metadata": "{"},
		"metadata no object":       {"metadata": "[1]"},
		"metadata null":            {"metadata": "null"},
		"metadata large":           {"metadata": `{"a":"` + strings.Repeat("x", 64<<10) + `"}`},
		"metadata number":          {"metadata": `{"a":1e999999}`},
		"metadata escaped NUL":     {"metadata": `{"a":"\u0000"}`},
		"metadata lone surrogate":  {"metadata": `{"a":"\ud800"}`},
		"metadata wrong surrogate": {"metadata": `{"a":"\udc00\ud800"}`},
		"title NUL":                {"title": "a\x00"},
		"title long":               {"title": strings.Repeat("x", 501)},
	} {
		_, err := w.create(input)
		require.NotNil(t, err, name)
		require.Equal(t, fault.ValidationError, err.Type, name)
	}
	for _, id := range []string{ident.New(), "nonsense"} {
		_, err := w.create(args{"agentId": id})
		require.Equal(t, fault.NotFound, err.Type)
	}
	require.Equal(t, "CHAT-3", w.thread().ID, "refused threads left a gap")

	_, dbErr := p.DB.Superuser(t).Exec(t.Context(), `update spaces set default_agent_id = null`)
	require.NoError(t, dbErr)
	_, err = w.create(args{})
	require.Equal(t, fault.ValidationError, err.Type)
}

func TestNumbersHaveNoGapsUnderConcurrency(t *testing.T) {
	p := handlertest.New(t)
	w := open(t, p, "acme")
	var g errgroup.Group
	var mu sync.Mutex
	seen := map[string]bool{}
	for i := range 40 {
		g.Go(func() error {
			if i%4 == 0 { // a transaction that fails after it took its number
				_ = p.DB.App.InTenant(t.Context(), w.TenantID, func(tx pgx.Tx) error {
					if _, err := thread.Create(t.Context(), tx, w.TenantID, thread.New{}); err != nil {
						return err
					}
					return fmt.Errorf("change of mind")
				})
				return nil
			}
			th, err := w.create(args{})
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			seen[th.ID] = true
			return nil
		})
	}
	require.NoError(t, g.Wait())
	require.Len(t, seen, 30)
	for i := range 30 {
		require.True(t, seen[fmt.Sprintf("CHAT-%d", i+1)], i+1)
	}
}

func TestSendMessage(t *testing.T) {
	p := handlertest.New(t)
	w := open(t, p, "acme")
	th := w.thread()
	m, err := w.send(args{"threadId": th.ID, "body": "Hello"})
	require.Nil(t, err)
	require.Equal(t, thread.User, m.Role)
	require.Equal(t, th.ID, m.ThreadID)
	require.NotNil(t, m.TurnID)
	require.Equal(t, []string{"dispatch-turn"}, p.Invoked())
	require.Equal(t, m.ID, p.Published()[0].(publish.NewMessage).Message.ID)

	for name, input := range map[string]args{
		"empty":       {"threadId": th.ID, "body": ""},
		"blank":       {"threadId": th.ID, "body": " \n"},
		"NUL":         {"threadId": th.ID, "body": "a\x00"},
		"large":       {"threadId": th.ID, "body": strings.Repeat("x", 128<<10+1)},
		"token large": {"threadId": th.ID, "body": "x", "clientToken": strings.Repeat("x", 129)},
	} {
		_, err := w.send(input)
		require.NotNil(t, err, name)
		require.Equal(t, fault.ValidationError, err.Type, name)
	}
	for _, id := range []string{"CHAT-99", "chat-1", "CHAT-01", "", th.UUID, "CHAT-1; drop table threads"} {
		_, err := w.send(args{"threadId": id, "body": "x"})
		require.Equal(t, fault.NotFound, err.Type, id)
	}
	got, err := handlertest.Call[[]page.Page[thread.Message]](t, p, "thread-messages", functions.ThreadMessages, w.caller, args{"order": "OLDEST_FIRST"}, th)
	require.Nil(t, err)
	require.Len(t, got[0].Items, 1)
}

func TestOneClientTokenOneMessage(t *testing.T) {
	p := handlertest.New(t)
	w := open(t, p, "acme")
	th := w.thread()
	var g errgroup.Group
	var mu sync.Mutex
	ids := map[string]int{}
	for range 16 {
		g.Go(func() error {
			m, err := w.send(args{"threadId": th.ID, "body": "Hello", "clientToken": "once"})
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			ids[m.ID]++
			return nil
		})
	}
	require.NoError(t, g.Wait())
	require.Len(t, ids, 1)
	require.Len(t, p.Invoked(), 1)
	_, err := w.send(args{"threadId": th.ID, "body": "Another", "clientToken": "once"})
	require.Equal(t, fault.ValidationError, err.Type)
}

func TestStatusMoves(t *testing.T) {
	p := handlertest.New(t)
	w := open(t, p, "acme")
	allowed := map[string][]string{"open": {"waiting", "closed", "failed"}, "waiting": {"open", "closed", "failed"}, "closed": {"open"}, "failed": {"open"}}
	for from, to := range allowed {
		for _, next := range []string{"open", "waiting", "closed", "failed"} {
			th := w.thread()
			_, err := p.DB.Superuser(t).Exec(t.Context(), `update threads set status = $1 where uuid = $2`, from, th.UUID)
			require.NoError(t, err)
			before := len(p.Published())
			got, refused := w.update(th.ID, args{"status": next})
			switch {
			case from == next:
				require.Nil(t, refused)
				require.Len(t, p.Published(), before, "no change, no event")
			case strings.Contains(strings.Join(to, " "), next):
				require.Nil(t, refused, "%s → %s", from, next)
				require.Equal(t, thread.Status(next), got.Status)
				require.Equal(t, next, p.Published()[before].(publish.ThreadUpdate).Thread.Status)
				require.True(t, got.UpdatedAt.After(th.UpdatedAt.Time))
			default:
				require.Equal(t, fault.ValidationError, refused.Type, "%s → %s", from, next)
				require.Contains(t, refused.Message, strings.Join(to, " "))
			}
			if from != "open" {
				continue
			}
			_, err = p.DB.Superuser(t).Exec(t.Context(), `update threads set status = 'closed' where uuid = $1`, th.UUID)
			require.NoError(t, err)
			_, refused = w.send(args{"threadId": th.ID, "body": "Once more"})
			require.Nil(t, refused)
			reopened, refused := w.get(th.ID)
			require.Nil(t, refused)
			require.Equal(t, thread.Open, reopened.Status)
		}
	}
	th := w.thread()
	got, err := w.update(th.ID, args{"title": "T", "metadata": `{"a":1}`})
	require.Nil(t, err)
	require.Equal(t, "T", *got.Title)
	got, err = w.update(th.ID, args{"title": nil})
	require.Nil(t, err)
	require.Nil(t, got.Title)
	require.NotNil(t, got.Metadata)
}

func TestSameThreadIDsInTwoTenants(t *testing.T) {
	p := handlertest.New(t)
	acme, globex := open(t, p, "acme"), open(t, p, "globex")
	a, g := acme.thread(), globex.thread()
	require.Equal(t, a.ID, g.ID)
	only := acme.thread() // CHAT-2 exists in acme only
	_, err := acme.send(args{"threadId": a.ID, "body": "acme's secret"})
	require.Nil(t, err)
	_, err = globex.send(args{"threadId": g.ID, "body": "globex's"})
	require.Nil(t, err)

	_, foreign := globex.get(only.ID)
	_, missing := globex.get("CHAT-77")
	require.Equal(t, missing, foreign)
	_, err = globex.send(args{"threadId": only.ID, "body": "x"})
	require.Equal(t, missing, err)
	_, err = globex.update(only.ID, args{"title": "x"})
	require.Equal(t, missing, err)
	_, err = handlertest.Call[any](t, p, "on-thread-event", functions.OnThreadEvent, globex.caller, args{"threadId": only.ID})
	require.Equal(t, missing, err)

	list, err := handlertest.Call[page.Page[thread.Thread]](t, p, "list-threads", functions.ListThreads, globex.caller, args{})
	require.Nil(t, err)
	require.Len(t, list.Items, 1)
	require.Equal(t, g.UUID, list.Items[0].UUID)
	// Even a source that names another tenant's thread reads nothing.
	messages, err := handlertest.Call[[]page.Page[thread.Message]](t, p, "thread-messages", functions.ThreadMessages, globex.caller, args{}, a, g)
	require.Nil(t, err)
	require.Empty(t, messages[0].Items)
	require.Equal(t, "globex's", messages[1].Items[0].Body)
	turns, err := handlertest.Call[[]page.Page[turn.Turn]](t, p, "thread-turns", functions.ThreadTurns, globex.caller, args{}, a, g)
	require.Nil(t, err)
	require.Empty(t, turns[0].Items)
	agents, err := handlertest.Call[[]*agent.Agent](t, p, "thread-agent", functions.ThreadAgent, globex.caller, args{}, a, g)
	require.Nil(t, err)
	require.Nil(t, agents[0])
	require.Equal(t, globex.AgentID, agents[1].ID)
}

func TestListThreadsPages(t *testing.T) {
	p := handlertest.New(t)
	w := open(t, p, "acme")
	const n = 25
	var want []string
	for range n {
		want = append([]string{w.thread().ID}, want...)
	}
	// Half of them changed in the same microsecond: the order must still be total.
	_, dbErr := p.DB.Superuser(t).Exec(t.Context(), `update threads set updated_at = (select max(updated_at) from threads) where number % 2 = 0`)
	require.NoError(t, dbErr)
	read := func(limit int, filter args) (ids []string) {
		var token *string
		for {
			got, err := handlertest.Call[page.Page[thread.Thread]](t, p, "list-threads", functions.ListThreads, w.caller, args{"limit": limit, "nextToken": token, "filter": filter})
			require.Nil(t, err)
			for _, th := range got.Items {
				ids = append(ids, th.ID)
			}
			if token = got.NextToken; token == nil {
				return ids
			}
		}
	}
	all := read(100, nil)
	require.ElementsMatch(t, want, all)
	require.Equal(t, all, read(4, nil))
	require.Equal(t, all, read(25, args{"agentId": w.AgentID, "status": "open", "channel": "CHAT"}))
	require.Equal(t, all, read(3, args{"agentId": w.AgentID}))
	require.Empty(t, read(10, args{"status": "closed"}))
	require.Empty(t, read(10, args{"agentId": ident.New()}))
	_, err := handlertest.Call[any](t, p, "list-threads", functions.ListThreads, w.caller, args{"filter": args{"agentId": "nonsense"}})
	require.Equal(t, fault.ValidationError, err.Type)
	_, err = handlertest.Call[any](t, p, "list-threads", functions.ListThreads, w.caller, args{"limit": 101})
	require.Equal(t, fault.ValidationError, err.Type)
}

func TestMessagesPageBothWays(t *testing.T) {
	p := handlertest.New(t)
	w := open(t, p, "acme")
	th, other := w.thread(), w.thread()
	for i := range 7 {
		_, err := w.send(args{"threadId": th.ID, "body": fmt.Sprint(i + 1)})
		require.Nil(t, err)
	}
	for order, want := range map[string]string{"OLDEST_FIRST": "1234567", "NEWEST_FIRST": "7654321"} {
		var got strings.Builder
		var token *string
		for {
			pages, err := handlertest.Call[[]page.Page[thread.Message]](t, p, "thread-messages", functions.ThreadMessages, w.caller, args{"order": order, "limit": 3, "nextToken": token}, th)
			require.Nil(t, err)
			for _, m := range pages[0].Items {
				got.WriteString(m.Body)
			}
			if token = pages[0].NextToken; token == nil {
				break
			}
			_, err = handlertest.Call[any](t, p, "thread-messages", functions.ThreadMessages, w.caller, args{"order": order, "nextToken": token}, other)
			require.Equal(t, fault.ValidationError, err.Type, "a token of another thread")
			_, err = handlertest.Call[any](t, p, "thread-messages", functions.ThreadMessages, w.caller, args{"order": order, "nextToken": token}, th, other)
			require.Equal(t, fault.ValidationError, err.Type, "one token for two threads")
		}
		require.Equal(t, want, got.String())
	}
}

func TestEventIsTheContract(t *testing.T) {
	p := handlertest.New(t)
	w := open(t, p, "acme")
	th := w.thread()
	filter, err := handlertest.Call[map[string]string](t, p, "on-thread-event", functions.OnThreadEvent, w.caller, args{"threadId": th.ID})
	require.Nil(t, err)
	_, err = w.send(args{"threadId": th.ID, "body": "Hello"})
	require.Nil(t, err)
	raw, jsonErr := json.Marshal(p.Published()[0])
	require.NoError(t, jsonErr)
	var event map[string]any
	require.NoError(t, json.Unmarshal(raw, &event))
	for name, value := range filter {
		require.Equal(t, value, event[name], "an event must hold what its subscribers are filtered by")
	}
}

// Who interrupts a turn that waits for a person ends it: a workflow that waits for it is told, and no other message costs that call.
func TestInterruptingATurnThatAWorkflowWaitsFor(t *testing.T) {
	w := open(t, handlertest.New(t), "acme")
	super := w.p.DB.Superuser(t)
	for _, awaited := range []bool{false, true} {
		th := w.thread()
		first, err := w.send(args{"threadId": th.ID, "body": "one"})
		require.Nil(t, err)
		if awaited {
			require.NoError(t, w.p.DB.App.InTenant(t.Context(), w.TenantID, func(tx pgx.Tx) error {
				_, err := callback.Add(t.Context(), tx, callback.Callback{TenantID: w.TenantID, Token: "token", TurnID: *first.TurnID})
				return err
			}))
		}
		_, failed := super.Exec(t.Context(), `update thread_turns set status = 'waiting', waits_for = 'approval' where id = $1`, *first.TurnID)
		require.NoError(t, failed)
		invoked := len(w.p.Invoked())
		_, err = w.send(args{"threadId": th.ID, "body": "two", "onBusy": "INTERRUPT"})
		require.Nil(t, err)
		want := []string{"dispatch-turn"}
		if awaited {
			want = []string{"answer-callbacks", "dispatch-turn"}
		}
		require.Equal(t, want, w.p.Invoked()[invoked:])
	}
}
