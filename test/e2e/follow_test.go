package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// follower is a client of a thread as docs/api.md tells how to write one: it has every event once and in order, whatever its socket missed.
type follower struct {
	*user
	thread string
	last   int           // the number of the newest event that it has
	early  map[int]event // what came before events that are still missing
	all    []event
}

func (u *user) follow(thread string) *follower {
	return &follower{user: u, thread: thread, early: map[int]event{}}
}

// take has an event; those behind it may have come already.
func (f *follower) take(e event) {
	if e.Sequence > f.last {
		f.early[e.Sequence] = e
	}
	for {
		next, ok := f.early[f.last+1]
		if !ok {
			return
		}
		delete(f.early, next.Sequence)
		f.last++
		f.all = append(f.all, next)
	}
}

// catchUp reads what was missed.
func (f *follower) catchUp() error {
	for {
		a, err := f.ask(`query ($id: ID!, $after: Int!) { threadEvents(threadId: $id, after: $after, limit: 20) { items { `+eventFields+` } last prunedBefore } }`,
			vars{"id": f.thread, "after": f.last})
		if err == nil && len(a.Errors) > 0 {
			err = errors.New(a.problem())
		}
		if err != nil {
			return err
		}
		var page struct {
			Items              []event
			Last, PrunedBefore int
		}
		if err := json.Unmarshal([]byte(a.get("threadEvents")), &page); err != nil {
			return err
		}
		if page.PrunedBefore > f.last+1 {
			return fmt.Errorf("events before %d are gone", page.PrunedBefore)
		}
		after := f.last // take goes on behind the page with what came early
		for i, e := range page.Items {
			if e.Sequence != after+1+i {
				return fmt.Errorf("item %d behind %d is %d", i, after, e.Sequence)
			}
			f.take(e)
		}
		if f.last >= page.Last {
			return nil
		}
	}
}

// listen subscribes, reads what was missed, and takes some events more, or those until done, before the socket is cut.
func (f *follower) listen(t testing.TB, some int, done func(event) bool) (over bool, err error) {
	s, err := f.subscribe(t, watchDocument, f.thread)
	if err != nil {
		return false, err
	}
	defer s.close()
	for _, e := range f.all {
		over = over || done(e)
	}
	before := len(f.all)
	if err := f.catchUp(); err != nil {
		return false, err
	}
	for i := 0; ; {
		for _, e := range f.all[before:] {
			over = over || done(e)
		}
		before = len(f.all)
		if over || i >= some {
			return over, nil
		}
		at, err := s.await(i, func(event) bool { return true })
		if err != nil {
			return false, err
		}
		f.take(s.seen()[at])
		i = at + 1
		if len(f.early) > 0 { // one is missing: late, or lost
			if err := f.catchUp(); err != nil {
				return false, err
			}
		}
	}
}

// check compares all events with the thread: no gap, each message once, and each reply as its chunks told it.
func (f *follower) check(t testing.TB) {
	t.Helper()
	require.NoError(t, f.catchUp())
	text := map[string]string{}
	var told []message
	for i, e := range f.all {
		require.Equal(t, i+1, e.Sequence)
		switch e.Typename {
		case "StreamChunkEvent":
			text[e.MessageID] += e.Chunk
		case "NewMessageEvent":
			told = append(told, e.Message)
			if e.Message.Role == "assistant" {
				require.Equal(t, e.Message.Body, text[e.Message.ID])
			}
		}
	}
	require.Equal(t, f.messages(t, f.thread), told)
}

// TestFiftyCuts: a client whose socket is cut fifty times while a reply streams, and others write into the thread, has every byte of it, once and in
// order.
func TestFiftyCuts(t *testing.T) {
	t.Parallel()
	p := sharedPlatform(t)
	alice, max := p.as(t, "alice"), p.as(t, "max")
	thread, said := alice.open(t), words(250)
	turn := alice.send(t, thread, "/slow 20", "/say "+said)
	f := alice.follow(thread)
	_, err := f.listen(t, 1000, func(e event) bool { return e.Typename == "StreamChunkEvent" }) // what others write is not of this turn
	require.NoError(t, err)
	var others errgroup.Group
	others.Go(func() error {
		for i := range 10 {
			a, err := max.ask(sendDocument, vars{"input": vars{"threadId": thread, "body": fmt.Sprintf("/say %d", i)}})
			if err != nil || len(a.Errors) > 0 {
				return fmt.Errorf("%w %s", err, a.problem())
			}
		}
		return nil
	})
	replied := func(e event) bool { return e.Message.Role == "assistant" && e.Message.TurnID == turn }
	over, cuts, during := false, 0, 0
	for cuts < 50 {
		if !over {
			during++
		}
		over, err = f.listen(t, rand.IntN(3), replied)
		require.NoError(t, err)
		cuts++
	}
	for !over {
		over, err = f.listen(t, 1000, replied)
		require.NoError(t, err)
	}
	require.NoError(t, others.Wait())
	t.Logf("%d events; %d of the cuts while the reply was written", len(f.all), during)
	require.Greater(t, during, 10)
	require.Equal(t, "succeeded", alice.ended(t, turn).Status)
	for _, m := range alice.messages(t, thread) {
		if m.Role == "user" {
			alice.ended(t, m.TurnID)
		}
	}
	f.check(t)
	require.Equal(t, said, func() (whole string) {
		for _, e := range f.all {
			if replied(e) {
				return e.Message.Body
			}
		}
		return ""
	}())
}

// TestEventsOfSomebodyElse: another tenant's thread is not there; a page's bounds are told.
func TestEventsOfSomebodyElse(t *testing.T) {
	t.Parallel()
	p := sharedPlatform(t)
	foreign := p.foreign(t)
	for query, want := range map[string]string{
		`{ threadEvents(threadId: "` + foreign + `") { last } }`:              "404 NotFound thread not found",
		`{ threadEvents(threadId: "SLACK-999999") { last } }`:                 "404 NotFound thread not found",
		`{ threadEvents(threadId: "` + foreign + `", limit: 1001) { last } }`: "400 ValidationError limit must be from 1 to 1000",
		`{ threadEvents(threadId: "` + foreign + `", after: -1) { last } }`:   "400 ValidationError after must be 0 or more",
	} {
		a, err := p.as(t, "max").ask(query, nil)
		require.NoError(t, err)
		require.Equal(t, want, a.problem(), query)
	}
}

// TestAClientOutlivesThePlatform: killed while a reply streams, the platform begins the reply anew, under another message id; a client that comes back
// has both, without a gap.
func TestAClientOutlivesThePlatform(t *testing.T) {
	t.Parallel()
	p := startPlatform(t)
	alice := p.as(t, "alice")
	thread := alice.open(t)
	f := alice.follow(thread)
	turn := alice.send(t, thread, "/slow 60", "/say "+words(40))
	chunks := func(n int) func(event) bool {
		return func(e event) bool {
			if e.Typename == "StreamChunkEvent" {
				n--
			}
			return n < 0
		}
	}
	_, err := f.listen(t, 1000, chunks(3))
	require.NoError(t, err)
	p.kill()
	seen := len(f.all)
	again := p.restart(t)
	f.user = again.as(t, "alice")
	over, err := f.listen(t, 1000, func(e event) bool { return e.Message.Role == "assistant" })
	require.NoError(t, err)
	require.True(t, over)
	require.Equal(t, 2, f.ended(t, turn).Attempts)
	f.check(t)
	ids := map[string]bool{}
	for _, e := range f.all {
		if e.MessageID != "" {
			ids[e.MessageID] = true
		}
	}
	require.Len(t, ids, 2)
	require.Greater(t, len(f.all), seen)
}
