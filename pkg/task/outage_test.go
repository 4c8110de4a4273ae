package task_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Whatever the provider answers, or does not, the event is in its thread, with what it says itself.
func TestTheProviderCannotBeAsked(t *testing.T) {
	status := func(code int, header ...string) http.HandlerFunc {
		return func(rw http.ResponseWriter, _ *http.Request) {
			for i := 0; i+1 < len(header); i += 2 {
				rw.Header().Set(header[i], header[i+1])
			}
			rw.WriteHeader(code)
		}
	}
	released := make(chan struct{})
	t.Cleanup(func() { close(released) })
	for name, c := range map[string]struct {
		answer    http.HandlerFunc
		questions int
	}{
		"down": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 1},
		"slow": {func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-released:
			case <-r.Context().Done():
			}
		}, 1},
		"500":             {status(500), 1},
		"429":             {status(429), 1},
		"503 with a time": {status(503, "Retry-After", "0"), 1},
		"403":             {status(403), 2}, // this user may not see it: the next one is asked
		"404":             {status(404), 2},
		"no JSON":         {func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, "<html>") }, 1},
		"another task": {func(rw http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(rw, `{"data":{"issue":{"id":"00000000-0000-4000-8000-000000000000","title":"Of somebody else"}}}`)
		}, 2},
		"rate limited in words": {func(rw http.ResponseWriter, _ *http.Request) {
			rw.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(rw, `{"errors":[{"message":"x","extensions":{"code":"RATELIMITED"}}]}`)
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.processor.Patience = 200 * time.Millisecond
			w.user(adaID)
			w.user(boID)
			w.linear.answers(c.answer)
			w.happen(fixture(t, "issue-state-changed"))
			require.Equal(t, []string{"synthetic", "Done", "Ada Byron"}, []string{w.envelope("source"), w.envelope("status"), query[string](w, `select metadata #>> '{external,latestEnvelope,assignee,name}' from threads`)})
			require.Equal(t, []string{"Bo Chen moved ENG-123 to Done"}, w.messages())
			require.Equal(t, []string{"Bo Chen moved ENG-123 to Done"}, w.pushes())
			require.Equal(t, "done", query[string](w, `select status from task_events`))
			require.Len(t, w.linear.questions(), c.questions)
			require.Equal(t, 2, query[int](w, `select count(*) from connections where status = 'active'`))

			w.linear.answers(nil)
			w.happen(at(fixture(t, "issue-due-set"), "2026-03-02T10:10:00.000Z"))
			require.Equal(t, "live", w.envelope("source"), "the next event finds the provider again")
		})
	}
}

// A token that is not taken is renewed; one that cannot be renewed is over, and the next person is asked as.
func TestATokenThatIsNotTaken(t *testing.T) {
	w := newWorld(t)
	_, ada := w.user(adaID)
	w.user(boID)
	w.linear.answers(func(rw http.ResponseWriter, r *http.Request) {
		if person, ok := w.linear.authority.Whose(r); ok && person == boID {
			fmt.Fprintf(rw, `{"data":{"issue":{"id":%q,"identifier":"ENG-123","title":"As Bo sees it","updatedAt":"2026-03-02T10:09:00.000Z","assignee":{"id":%q}}}}`, issueID, adaID)
			return
		}
		rw.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(rw, `{"errors":[{"message":"x","extensions":{"code":"AUTHENTICATION_ERROR"}}]}`)
	})
	w.happen(fixture(t, "issue-assigned"))
	require.Equal(t, []string{"live", "As Bo sees it"}, []string{w.envelope("source"), w.envelope("title")})
	require.Equal(t, "reconnect", query[string](w, `select status from connections where id = $1`, ada))
	require.Equal(t, []string{"Bo Chen assigned ENG-123 to Ada Byron"}, w.pushes(), "whoever has to connect again is told all the same")

	before := len(w.linear.questions())
	w.exec(`update connections set status = 'reconnect', reason = 'x'`)
	w.happen(at(fixture(t, "issue-due-set"), "2026-03-02T10:10:00.000Z"))
	require.Equal(t, "synthetic", w.envelope("source"))
	require.Len(t, w.linear.questions(), before, "nobody is left to be asked as")
}

// Without a connection of anybody who has to do with the task nothing is asked; not another tenant's either.
func TestNobodyIsConnected(t *testing.T) {
	w := newWorld(t)
	n := w.neighbour()
	n.user(adaID)
	w.happen(fixture(t, "issue-assigned"))
	require.Equal(t, "synthetic", w.envelope("source"))
	require.Empty(t, w.linear.questions())
	require.Empty(t, w.pushes())

	caller, _ := w.user(adaID)
	w.exec(`update users set status = 'disabled' where id = $1`, caller.UserID)
	w.happen(at(fixture(t, "issue-due-set"), "2026-03-02T10:10:00.000Z"))
	require.Empty(t, w.linear.questions())
	require.Empty(t, w.pushes())
}

// Of whom the task was, by what is known, is asked as when the event itself says nobody who is connected.
func TestWhoseItWas(t *testing.T) {
	w := newWorld(t)
	w.happen(fixture(t, "issue-assigned"))
	w.user(adaID)
	w.happen(fixture(t, "comment-create"))
	require.Equal(t, []string{adaID}, w.linear.questions())
	require.Equal(t, "live", w.envelope("source"))
}
