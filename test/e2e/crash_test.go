package e2e

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// settled waits until every turn of a thread has ended, and checks what must hold whatever was killed when: each turn that was asked for
// has one reply (an interrupted one may have none), no reply has no question, and the thread takes the next message.
func settled(t testing.TB, u *user, thread string, statuses ...string) []turn {
	t.Helper()
	var turns []turn
	a := u.query(t, `query ($id: ID!) { getThread(id: $id) { turns(limit: 100) { items { id } } } }`, vars{"id": thread})
	require.NoError(t, json.Unmarshal([]byte(a.get("getThread.turns.items")), &turns))
	asked, replies := map[string]int{}, map[string]int{}
	for i := range turns {
		turns[i] = u.ended(t, turns[i].ID)
		require.Contains(t, append(statuses, "succeeded"), turns[i].Status)
	}
	for _, m := range u.messages(t, thread) {
		if m.Role == "assistant" {
			replies[m.TurnID]++
		} else {
			asked[m.TurnID]++
		}
	}
	require.Len(t, asked, len(turns), "every turn was asked for")
	for _, turn := range turns {
		if turn.Status == "interrupted" {
			require.LessOrEqual(t, replies[turn.ID], 1)
		} else {
			require.Equal(t, 1, replies[turn.ID], "replies of turn %s", turn.ID)
		}
	}
	require.LessOrEqual(t, len(replies), len(turns))
	u.follow(thread).check(t)
	id := u.send(t, thread, "/say Still here.")
	require.Equal(t, "succeeded", u.ended(t, id).Status)
	list := u.messages(t, thread)
	require.Equal(t, "Still here.", list[len(list)-1].Body)
	return turns
}

// TestKilledDuringATurn kills the platform at chosen and at random moments and starts it again on the same data.
func TestKilledDuringATurn(all *testing.T) {
	all.Parallel()
	p := startPlatform(all)
	const slow, words = "/slow 60", "/say one two three four five six seven eight nine ten eleven twelve"
	streaming := func(e event) bool { return e.Typename == "StreamChunkEvent" }
	seen := func(t *testing.T, u *user, thread string, want func(event) bool, send ...string) {
		watch := u.watch(t, thread)
		u.send(t, thread, send...)
		_, err := watch.await(0, want)
		require.NoError(t, err)
	}
	type moment struct {
		name string
		to   func(t *testing.T, u *user, thread string) // ends when the platform is to be killed
		turns,
		atMost int // how many turns there are; how often one of them was begun
		statuses []string
	}
	moments := []moment{
		{"right after sendMessage returned", func(t *testing.T, u *user, thread string) { u.send(t, thread, "/say At once.") }, 1, 2, nil},
		{"while the reply streams", func(t *testing.T, u *user, thread string) { seen(t, u, thread, streaming, slow, words) }, 1, 2, nil},
		{"with a second message waiting", func(t *testing.T, u *user, thread string) {
			seen(t, u, thread, streaming, slow, words)
			u.send(t, thread, "/say And this one.")
		}, 2, 2, nil},
		{"with an interrupt asked for", func(t *testing.T, u *user, thread string) {
			seen(t, u, thread, streaming, slow, words)
			u.query(t, sendDocument, vars{"input": vars{"threadId": thread, "body": "/say Stop that.", "onBusy": "INTERRUPT"}})
		}, 2, 2, []string{"interrupted"}},
		{"while a tool is called", func(t *testing.T, u *user, thread string) {
			seen(t, u, thread, func(e event) bool { return e.Status == "calling_tool" }, "/slow 20", words, `/tool read_thread {"threadId":"CHAT-1"}`)
		}, 1, 2, nil},
		{"when the reply is complete", func(t *testing.T, u *user, thread string) {
			seen(t, u, thread, func(e event) bool { return e.Done }, "/slow 20", words)
		}, 1, 2, nil},
		{"when the reply is announced", func(t *testing.T, u *user, thread string) {
			seen(t, u, thread, func(e event) bool { return e.Message.Role == "assistant" }, "/say Done.")
		}, 1, 1, nil},
	}
	for range 3 {
		after := time.Duration(rand.IntN(900)) * time.Millisecond
		moments = append(moments, moment{"at random: " + after.String() + " after the message", func(t *testing.T, u *user, thread string) {
			u.send(t, thread, slow, words)
			<-time.After(after)
		}, 1, 2, nil})
	}
	for _, m := range moments {
		ok := all.Run(m.name, func(t *testing.T) {
			alice := p.as(t, "alice")
			thread := alice.open(t)
			m.to(t, alice, thread)
			p.kill()
			p = p.restart(all)
			alice = p.as(t, "alice")
			turns := settled(t, alice, thread, m.statuses...)
			require.Len(t, turns, m.turns)
			for _, turn := range turns {
				require.LessOrEqual(t, turn.Attempts, m.atMost)
			}
		})
		if !ok {
			return
		}
	}
}

// TestKilledTwiceInTheSameTurn: the third attempt ends it.
func TestKilledTwiceInTheSameTurn(t *testing.T) {
	t.Parallel()
	p := startPlatform(t)
	alice := p.as(t, "alice")
	thread := alice.open(t)
	watch := alice.watch(t, thread)
	id := alice.send(t, thread, "/slow 400", "/say one two three four five six seven eight nine ten")
	_, err := watch.await(0, func(e event) bool { return e.Typename == "StreamChunkEvent" })
	require.NoError(t, err)
	p.kill()
	p = p.restart(t) // the turn is taken up before the platform says that it is up
	p.kill()
	p = p.restart(t)
	turns := settled(t, p.as(t, "alice"), thread)
	require.Len(t, turns, 1)
	require.Equal(t, id, turns[0].ID)
	require.Equal(t, 3, turns[0].Attempts)
}

// TestKilledDuringTheFirstStart kills platforms that are still making their data directory: the next start makes do with what is there.
func TestKilledDuringTheFirstStart(t *testing.T) {
	t.Parallel()
	for range 3 {
		dir := dataDir(t)
		proc, err := launch(command(dir, nil))
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), startTime)
		require.NoError(t, proc.output.await(ctx, "making the database"))
		cancel()
		after := time.Duration(rand.IntN(1200)) * time.Millisecond
		<-time.After(after)
		proc.signal(syscall.SIGKILL)
		<-proc.done
		t.Log("killed after", after)
		once, err := launch(command(dir, nil, "--once"))
		require.NoError(t, err)
		require.Equal(t, 0, once.exit(), once.output)
	}
}

// TestCtrlC: a running turn does not keep the platform from ending, and goes on at the next start. On the same port everything that a
// client has stays good.
func TestCtrlC(t *testing.T) {
	t.Parallel()
	port, tlsPort := freePort(t), freePort(t)
	p := startPlatform(t, "PORT="+port, "TLS_PORT="+tlsPort)
	first := p.Outputs
	require.Equal(t, "http://127.0.0.1:"+port, first.APIURL)
	alice := p.as(t, "alice")
	thread := alice.open(t)
	watch := alice.watch(t, thread)
	id := alice.send(t, thread, "/slow 200", "/say one two three four five six seven eight nine ten eleven twelve")
	_, err := watch.await(0, func(e event) bool { return e.Typename == "StreamChunkEvent" })
	require.NoError(t, err)
	before := everything(t, p.as(t, "bob"))

	require.Equal(t, 0, p.stop(), p.output)
	require.Contains(t, p.output.String(), "stopping …")
	require.Empty(t, p.stderr.String(), "nothing to complain about")

	again := p.restart(t)
	first.DatabaseReaderURL = again.Outputs.DatabaseReaderURL // the database's port is any that is free
	require.Equal(t, first, again.Outputs)
	require.Equal(t, p.Password, again.Password)
	alice.platform = again // with the token of before
	turns := settled(t, alice, thread)
	require.Equal(t, id, turns[0].ID)
	if functions == "" {
		require.Equal(t, 1, turns[0].Attempts, "a turn that was handed back did not die")
	} else {
		require.Equal(t, 2, turns[0].Attempts, "a function's process is killed, as Lambda kills it: its turn is taken up again")
	}
	fresh, err := again.signInErr("REFRESH_TOKEN_AUTH", map[string]string{"REFRESH_TOKEN": alice.tokens.RefreshToken})
	require.NoError(t, err)
	alice.tokens = fresh
	alice.query(t, `{ listThreads { nextToken } }`, nil)
	require.Equal(t, before, everything(t, again.as(t, "bob")))
	require.Equal(t, 0, again.stop(), again.output)
}

// TestCtrlCDuringTheStart ends the start cleanly, whatever it was doing; the next one goes on.
func TestCtrlCDuringTheStart(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	for _, after := range []time.Duration{0, 50 * time.Millisecond, 300 * time.Millisecond} {
		proc, err := launch(command(dir, nil, "--once"))
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), startTime)
		require.NoError(t, proc.output.await(ctx, "starting the database"))
		cancel()
		<-time.After(after)
		proc.signal(syscall.SIGINT)
		require.Equal(t, 0, proc.exit(), proc.output)
		require.Empty(t, proc.stderr.String())
	}
	proc, err := launch(command(dir, nil, "--once"))
	require.NoError(t, err)
	require.Equal(t, 0, proc.exit(), proc.output)
}
