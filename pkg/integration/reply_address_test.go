package integration_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/channel"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/integration"
	"github.com/agentplatform/agentplatform/pkg/mail"
)

// at is a message of one conversation that is answered at an address of its own, as a comment on a line is.
func (c *counter) at(id, address string) integration.Taken {
	c.t.Helper()
	d := integration.Arrived(c.TenantID, integration.Generic, []byte(id))
	d.IntegrationID, d.ProviderID = &c.integration.ID, &id
	where, err := json.Marshal(map[string]string{"conversation": address})
	require.NoError(c.t, err)
	got, err := integration.Take(c.t.Context(), c.db.App, integration.Taking{Integration: c.integration, Delivery: d,
		Said: channel.Said{Key: "17", MessageKey: id, Opens: true, Body: "Why?", Sender: channel.Sender{ID: "c4", Name: `x", "address": {"conversation": "forged"}, "y": "`}, Address: where}})
	require.NoError(c.t, err)
	return got
}

func (c *counter) runs(turnID string) {
	c.t.Helper()
	c.exec(`update thread_turns set status = 'running' where id = $1`, turnID)
}

// places are the addresses that answers arrived at.
func (in *inbox) places() (all []string) {
	for _, p := range in.posts() {
		all = append(all, p.Conversation)
	}
	return all
}

// An answer goes below what it answers, whatever was said in the conversation meanwhile.
func TestAnAnswerGoesWhereItWasAsked(t *testing.T) {
	c := newCounter(t)
	first := c.at("1", "comment-1")
	th := *first.Delivery.ThreadUUID
	c.runs(first.TurnID)
	second := c.at("2", "comment-2")
	require.NotEqual(t, first.TurnID, second.TurnID)
	require.Equal(t, second.TurnID, c.at("3", "comment-3").TurnID)
	c.answers(first.TurnID, "One.")
	c.serve(th)
	require.Equal(t, []string{"comment-1"}, c.inbox.places())
	c.answers(second.TurnID, "Two and three.")
	c.serve(th)
	require.Equal(t, []string{"comment-1", "comment-3"}, c.inbox.places(), "the last of those that it answers")

	failing := c.at("4", "comment-4")
	c.runs(failing.TurnID)
	c.at("5", "comment-5")
	c.answers(failing.TurnID, "")
	c.serve(th)
	require.Equal(t, "comment-4", c.inbox.places()[2], "that a turn has failed, likewise")

	// A turn that repeats it was asked the same.
	again := ident.New()
	c.exec(`update thread_turns set number = 10 where thread_uuid = $1 and status = 'queued'`, th)
	c.exec(`update messages set turn_number = 10 where thread_uuid = $1 and position = (select max(position) from messages where thread_uuid = $1 and role = 'user')`, th)
	c.exec(`insert into thread_turns (tenant_id, id, thread_uuid, agent_id, number, status, retry_of) select tenant_id, $2, thread_uuid, agent_id, 9, 'running', id from thread_turns where id = $1`, failing.TurnID, again)
	c.answers(again, "Four.")
	c.serve(th)
	require.Equal(t, "comment-4", c.inbox.places()[3])
}

// It is looked for, and posted again, where it was posted.
func TestAnAnswerStaysWhereItIs(t *testing.T) {
	c := newCounter(t)
	first := c.at("1", "comment-1")
	c.answers(first.TurnID, "One.")
	asked := 0
	c.inbox.answers(func(n int, out http.ResponseWriter, _ *http.Request) {
		if asked = n; n == 1 {
			out.WriteHeader(http.StatusTooManyRequests)
		}
	})
	c.serve(*first.Delivery.ThreadUUID)
	require.Equal(t, 1, asked)
	c.exec(`update messages set metadata = '{"kind": "integration", "address": {"conversation": "elsewhere"}}'`)
	c.exec(`update integration_threads set address = '{"conversation": "elsewhere"}'`)
	c.passes(time.Minute)
	c.serve(*first.Delivery.ThreadUUID)
	require.Equal(t, []string{"comment-1"}, c.inbox.places())
}

// What was refused is answered where it was said, in a thread that there is, too.
func TestARefusalGoesWhereItWasAsked(t *testing.T) {
	c := newCounter(t)
	first := c.at("1", "comment-1")
	c.answers(first.TurnID, "One.")
	c.serve(*first.Delivery.ThreadUUID)
	c.exec(`update agents set status = 'suspended'`)
	c.at("2", "comment-2")
	c.exec(`update agents set status = 'active'`)
	c.at("3", "comment-3")
	c.serve(*first.Delivery.ThreadUUID)
	require.Equal(t, []string{"comment-1", "comment-2"}, c.inbox.places())
}

// A message without an address of its own is answered at the conversation's.
func TestAnAnswerToNoMessageOutside(t *testing.T) {
	c := newCounter(t)
	first := c.at("1", "comment-1")
	c.exec(`update messages set metadata = null`)
	c.answers(first.TurnID, "One.")
	c.serve(*first.Delivery.ThreadUUID)
	require.Equal(t, []string{"comment-1"}, c.inbox.places())
}

// All who have asked are answered, as far as they are users still, and nobody who asked something else.
func TestAMailToAllWhoHaveAsked(t *testing.T) {
	w := newWorld(t)
	i := w.create(w.mailbox("support"))
	first := w.wrote(i, "1", "r:1", "One")
	w.exec(`update thread_turns set status = 'running' where id = $1`, first.TurnID)
	people := map[string]string{}
	for _, name := range []string{"grace", "ada", "gone"} {
		people[name] = ident.New()
		w.exec(`insert into users (tenant_id, id, email, role) values ($1, $2, $3, 'member')`, w.TenantID, people[name], name+"@acme.test")
	}
	var second integration.Taken
	for n, name := range []string{"grace", "ada", "gone", "grace"} {
		second = w.wrote(i, string(rune('a'+n)), "r:1", name)
		w.exec(`update messages set user_id = $1 where body = $2`, people[name], name)
	}
	w.exec(`update users set status = 'disabled' where email = 'gone@acme.test'`)
	c := w.courier()
	var sent *[]mail.Order
	c.Mail, sent = postOffice(func(mail.Order) error { return nil })
	for _, turnID := range []string{first.TurnID, second.TurnID} {
		w.answers(turnID, "Answer.")
		require.NoError(t, c.Deliver(t.Context(), integration.ReplyTask{TenantID: w.TenantID, ThreadUUID: *first.Delivery.ThreadUUID}))
	}
	require.Len(t, *sent, 2)
	require.Equal(t, []string{"owner@acme.test"}, (*sent)[0].To)
	require.Equal(t, []string{"grace@acme.test", "ada@acme.test"}, (*sent)[1].To)
}
