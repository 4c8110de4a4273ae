package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/channel"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/integration"
	"github.com/agentplatform/agentplatform/pkg/invoke"
	"github.com/agentplatform/agentplatform/pkg/mail"
)

// postOffice is the function that sends mails, as the courier asks it.
func postOffice(answer func(o mail.Order) error) (ask invoke.Function, sent *[]mail.Order) {
	sent = &[]mail.Order{}
	return handler.Call(func(_ context.Context, o mail.Order) (mail.Sent, error) {
		*sent = append(*sent, o)
		return mail.Sent{MessageID: "<reply@agents.test>"}, answer(o)
	}).Invoke, sent
}

// wrote is a mail of the tenant's owner that was taken in.
func (w *world) wrote(i integration.Integration, id, key, body string) integration.Taken {
	w.t.Helper()
	address, err := json.Marshal(map[string]any{"to": "owner@acme.test", "subject": "Order 17", "messageId": "<1@acme.test>", "references": []string{"<0@acme.test>"}, "domain": "in.agents.test"})
	require.NoError(w.t, err)
	d := integration.Arrived(w.TenantID, integration.Email, []byte(body))
	d.IntegrationID, d.ProviderID = &i.ID, &id
	subject := "Order 17"
	got, err := integration.Take(w.t.Context(), w.db.App, integration.Taking{Integration: i, UserID: w.UserID, Delivery: d,
		Said: channel.Said{Key: key, MessageKey: "<" + id + ">", Opens: true, Title: &subject, Body: body, Sender: channel.Sender{ID: "owner@acme.test"}, Address: address}})
	require.NoError(w.t, err)
	return got
}

func TestAnAnswerByMail(t *testing.T) {
	w := newWorld(t)
	i := w.create(w.mailbox("support"))
	got := w.wrote(i, "1", "r:1", "Where is it?")
	require.Equal(t, "EMAIL-1", *got.Delivery.ThreadID)
	require.Equal(t, w.UserID, query[string](w, `select user_id::text from messages`))
	w.answers(got.TurnID, "On its way.")
	c := w.courier()
	var sent *[]mail.Order
	c.Mail, sent = postOffice(func(mail.Order) error { return nil })
	task := integration.ReplyTask{TenantID: w.TenantID, ThreadUUID: *got.Delivery.ThreadUUID}
	for range 2 {
		require.NoError(t, c.Deliver(t.Context(), task))
	}
	replyTo := (*sent)[0].ReplyTo
	require.Regexp(t, `^reply\+.{10,}@in\.agents\.test$`, replyTo)
	require.Equal(t, []mail.Order{{TenantID: w.TenantID, TurnID: got.TurnID, To: []string{"owner@acme.test"}, ReplyTo: replyTo, Subject: "Re: Order 17", Text: "On its way.",
		InReplyTo: "<1@acme.test>", References: []string{"<0@acme.test>"}}}, *sent)
	require.Equal(t, "<reply@agents.test>", query[string](w, `select external_id from integration_replies`))

	// Who is no user any more gets nothing; another who has written does.
	other := ident.New()
	w.exec(`insert into users (tenant_id, id, email, role) values ($1, $2, 'grace@acme.test', 'member')`, w.TenantID, other)
	w.exec(`update messages set user_id = $1 where role = 'user'`, other)
	second := w.wrote(i, "2", "r:1", "Thanks")
	w.exec(`update users set status = 'disabled' where id = $1`, w.UserID)
	w.answers(second.TurnID, "You are welcome.")
	require.NoError(t, c.Deliver(t.Context(), task))
	require.Equal(t, []string{"grace@acme.test"}, (*sent)[1].To)
	w.exec(`update users set status = 'disabled'`)
	third := w.wrote(i, "3", "r:1", "Bye")
	w.answers(third.TurnID, "Bye.")
	require.NoError(t, c.Deliver(t.Context(), task))
	require.Len(t, *sent, 2)
	require.Equal(t, []string{"posted", "posted", "failed"}, w.statuses())
}

// Nobody can be asked whether a mail was sent: what may have been is not sent again.
func TestAMailWhoseFateIsNotKnown(t *testing.T) {
	for name, c := range map[string]struct {
		answer error
		want   string
		asked  int
	}{
		"lost":      {errors.New("no answer"), "unknown", 1},
		"throttled": {fault.New(fault.RateLimitExceeded, "later"), "posted", 2},
		"refused":   {fault.Invalid("the mail service does not send this mail"), "failed", 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			got := w.wrote(w.create(w.mailbox("support")), "1", "r:1", "Where is it?")
			w.answers(got.TurnID, "On its way.")
			courier := w.courier()
			var sent *[]mail.Order
			first := true
			courier.Mail, sent = postOffice(func(mail.Order) error {
				defer func() { first = false }()
				if first {
					return c.answer
				}
				return nil
			})
			for range 3 {
				require.NoError(t, courier.Deliver(t.Context(), integration.ReplyTask{TenantID: w.TenantID, ThreadUUID: *got.Delivery.ThreadUUID}))
				w.passes(5 * time.Minute)
			}
			require.Len(t, *sent, c.asked)
			require.Equal(t, []string{c.want}, w.statuses())
		})
	}
	t.Run("the courier dies", func(t *testing.T) {
		w := newWorld(t)
		got := w.wrote(w.create(w.mailbox("support")), "1", "r:1", "Where is it?")
		w.answers(got.TurnID, "On its way.")
		courier := w.courier()
		ask, sent := postOffice(func(mail.Order) error { return nil })
		courier.Mail = ask
		died := make(chan struct{})
		task := integration.ReplyTask{TenantID: w.TenantID, ThreadUUID: *got.Delivery.ThreadUUID}
		go func() {
			defer close(died)
			dies := *courier
			dies.Signal = exits("reply posted")
			_ = dies.Deliver(t.Context(), task)
		}()
		<-died
		w.passes(3 * time.Minute)
		require.NoError(t, courier.Deliver(t.Context(), task))
		require.Len(t, *sent, 1)
		require.Equal(t, []string{"unknown"}, w.statuses())
	})
}
