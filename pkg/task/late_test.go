package task_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/task"
)

// A comment says of its task how it is called, and nothing of its status: one that is late still shows, and the comment's title stays.
func TestAStatusAfterALaterComment(t *testing.T) {
	w := newWorld(t)
	w.happen(fixture(t, "issue-due-set")) // 10:04, Todo
	comment := fixture(t, "comment-create")
	comment["createdAt"] = "2026-03-02T10:08:00.000Z"
	comment["data"].(fields)["issue"].(fields)["title"] = "Rotate both keys"
	w.happen(comment)
	require.Equal(t, []string{"Rotate both keys", "2026-03-02T10:04:00Z"}, []string{w.envelope("title"), w.envelope("updatedAt")})
	w.happen(at(fixture(t, "issue-state-changed"), "2026-03-02T10:06:00.000Z"))
	require.Equal(t, []string{"Done", "Rotate both keys", "2026-03-02T10:06:00Z"}, []string{w.envelope("status"), w.envelope("title"), w.envelope("updatedAt")})
	w.happen(at(fixture(t, "issue-label-changed", fields{"title": "Rotate all keys"}), "2026-03-02T10:09:00.000Z"))
	require.Equal(t, "Rotate all keys", w.envelope("title"))

	w.happen(at(fixture(t, "issue-archived"), "2026-03-02T12:00:00.000Z"))
	comment = fixture(t, "comment-create")
	comment["createdAt"] = "2026-03-02T12:01:00.000Z"
	w.happen(comment)
	require.Equal(t, []string{"true", "2026-03-02T12:00:00Z"}, []string{w.envelope("gone"), w.envelope("updatedAt")}, "who comments on it does not bring it back")
	w.whole()
}

// asana delivers to a webhook of Asana's, signed, and has it processed.
func (w *world) asana(token string, events ...fields) {
	w.t.Helper()
	raw := encode(w.t, fields{"events": events})
	got, err := w.send(w.receiver, "asana", token, raw, "X-Hook-Signature", mac(signing, raw))
	require.NoError(w.t, err)
	require.NoError(w.t, w.processor.Process(w.t.Context(), got.Order))
}

func asanaChange(age time.Duration, changes fields) fields {
	e := fields{"user": fields{"gid": "7"}, "created_at": time.Now().UTC().Add(-age).Truncate(time.Second).Format(time.RFC3339Nano), "action": "changed",
		"resource": fields{"gid": "1", "resource_type": "task"}}
	for name, value := range changes {
		e[name] = value
	}
	return e
}

func assigned(to string) fields {
	return fields{"change": fields{"field": "assignee", "action": "changed", "new_value": fields{"gid": to, "resource_type": "user"}}}
}

// Asana's events never tell a task whole. What they say does not go back either.
func TestWhatAsanaSaysDoesNotGoBack(t *testing.T) {
	w := newWorld(t)
	hook := w.create("asana", signing)
	id := func() string {
		return query[string](w, `select metadata #>> '{external,latestEnvelope,assignee,id}' from threads`)
	}
	w.asana(hook.Token, asanaChange(9*time.Minute, assigned("11")))
	w.asana(hook.Token, asanaChange(5*time.Minute, assigned("12")))
	w.asana(hook.Token, asanaChange(7*time.Minute, assigned("13")))
	require.Equal(t, "12", id())
	w.asana(hook.Token, asanaChange(4*time.Minute, fields{"action": "deleted"}), asanaChange(3*time.Minute, fields{"change": fields{"field": "name"}}))
	require.Equal(t, []string{"true", "12"}, []string{w.envelope("gone"), id()})
	w.asana(hook.Token, asanaChange(2*time.Minute, fields{"action": "undeleted"}))
	require.Equal(t, "null", w.envelope("gone"))
	w.asana(hook.Token, asanaChange(time.Minute, assigned("14")))
	require.Equal(t, "14", id())
	require.Len(t, w.messages(), 7)
	w.whole()
}

// A task in two projects is told of by two webhooks, and is in its thread once; a stranger's word is his own.
func TestATaskOfTwoWebhooks(t *testing.T) {
	w := newWorld(t)
	one, two, open := w.create("asana", signing), w.create("asana", signing), w.create("asana", "")
	e := asanaChange(time.Minute, fields{"change": fields{"field": "name"}})
	raw := encode(t, fields{"events": []fields{e}})
	got, err := w.send(w.receiver, "asana", open.Token, raw)
	require.NoError(t, err)
	require.NoError(t, w.processor.Process(t.Context(), got.Order))
	w.asana(one.Token, e)
	w.asana(two.Token, e, asanaChange(time.Minute, fields{"change": fields{"field": "tags"}}))
	require.Equal(t, []string{"false", "true", "true"}, column[string](w, `select metadata::jsonb #>> '{event,verified}' from messages order by position`))
	require.Equal(t, 2, query[int](w, `select count(distinct metadata ->> 'eventId') from messages where body like '%title%'`))
	w.whole()
}

// Whose task it was is not told what is over: the one whose it is now is, and of an assignment that was followed by another one nobody.
func TestALatePush(t *testing.T) {
	w := newWorld(t)
	w.user(adaID)
	cy, _ := w.user("cy")
	w.linear.answers(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusServiceUnavailable) })
	whose := func() []string {
		return column[string](w, `select d.user_id::text from pushes p join devices d on d.id = p.device_id order by p.created_at`)
	}
	w.happen(at(fixture(t, "issue-assigned", fields{"assignee": fields{"id": "cy", "name": "Cy"}, "assigneeId": "cy"}), "2026-03-02T10:30:00.000Z"))
	require.Equal(t, []string{cy.UserID}, whose())
	w.happen(fixture(t, "issue-assigned")) // to Ada, before
	require.Equal(t, []string{cy.UserID}, whose())
	w.happen(fixture(t, "issue-state-changed")) // while it was Ada's
	require.Equal(t, []string{cy.UserID, cy.UserID}, whose())
	require.Len(t, w.messages(), 3)

	w.linear.answers(nil)
	w.linear.now(fields{"assignee": fields{"id": "cy", "name": "Cy"}, "updatedAt": "2026-03-02T10:50:00.000Z"})
	w.happen(at(fixture(t, "issue-assigned", fields{"priority": 2}), "2026-03-02T10:40:00.000Z")) // the provider knows better
	require.Equal(t, []string{cy.UserID, cy.UserID}, whose())
}

// A user's token is used for no task that only a stranger has named, nor for one of another workspace.
func TestWhatATokenIsUsedFor(t *testing.T) {
	w := newWorld(t)
	w.user(adaID)
	other := fixture(t, "issue-assigned")
	other["organizationId"] = "another workspace's"
	w.happen(other)
	delete(other, "organizationId")
	w.happen(other)
	require.Empty(t, w.linear.questions())
	w.exec(`update webhooks set secret_version = -1`)
	got, err := w.send(w.receiver, "linear", w.hook.Token, encode(t, fixture(t, "issue-assigned")))
	require.NoError(t, err)
	require.NoError(t, w.processor.Process(t.Context(), got.Order))
	require.Empty(t, w.linear.questions())
	require.Equal(t, []string{"synthetic"}, column[string](w, `select distinct metadata #>> '{external,latestEnvelope,source}' from threads`))
	w.exec(`update webhooks set secret_version = 1`)
	w.happen(fixture(t, "issue-due-set"))
	require.Equal(t, []string{adaID}, w.linear.questions())
}

// Who wants to be left alone is not asked again before, by no event of this process; others are.
func TestAProviderIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.user(adaID)
	w.linear.answers(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Retry-After", "3600")
		rw.WriteHeader(http.StatusTooManyRequests)
	})
	for i := range 3 {
		w.happen(fixture(t, "issue-state-changed", fields{"priority": i}))
	}
	require.Len(t, w.linear.questions(), 1)
	w.linear.answers(nil)
	w.happen(fixture(t, "issue-state-changed", fields{"priority": 3, "assignee": fields{"id": "x"}, "assigneeId": "x"}))
	require.Len(t, w.linear.questions(), 1, "nor as who it was before")
	w.user(boID)
	w.happen(fixture(t, "issue-state-changed", fields{"priority": 4}))
	require.Equal(t, []string{boID}, w.linear.questions())
}

// An authorization server that gives no token is left alone for a while.
func TestATokenEndpointThatRefuses(t *testing.T) {
	w := newWorld(t)
	w.user(adaID)
	w.linear.authority.Expire()
	w.linear.authority.Down(http.StatusServiceUnavailable)
	w.linear.answers(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusUnauthorized) })
	w.happen(fixture(t, "issue-state-changed"))
	asked := w.linear.authority.Asked()
	for i := range 3 {
		w.happen(fixture(t, "issue-state-changed", fields{"priority": i}))
	}
	require.Equal(t, asked, w.linear.authority.Asked())
	require.Len(t, w.linear.questions(), 1)
	require.Len(t, w.messages(), 4)
}

// For an event that is in its thread already nobody is asked.
func TestAnEventThatIsThere(t *testing.T) {
	w := newWorld(t)
	w.user(adaID)
	o := w.happen(fixture(t, "issue-assigned"))
	w.again(o)
	require.NoError(t, w.processor.Process(t.Context(), task.Order{TenantID: o.TenantID, EventID: o.EventID}))
	require.Len(t, w.linear.questions(), 1)
	require.Equal(t, "live", w.envelope("source"))
	require.Len(t, w.pushes(), 1)
	require.Len(t, w.messages(), 1)
}
