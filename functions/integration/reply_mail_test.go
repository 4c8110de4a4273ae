package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	functions "github.com/agentplatform/agentplatform/functions/integration"
	mailfunctions "github.com/agentplatform/agentplatform/functions/mail"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/integration"
	"github.com/agentplatform/agentplatform/pkg/mail"
)

// withMail has mails that go out kept in the outbox.
func (s *post) withMail() *post {
	s.p.WithMail("agents@acme.test", s.p.Outbox()).WithFunctions(s.t, map[string]handler.Constructor{mail.Function: mailfunctions.SendMail})
	return s
}

// deliver has acme's replies posted.
func (s *post) deliver() {
	s.t.Helper()
	for _, thread := range append(query[string](s, s.acme.TenantID, `select distinct thread_uuid::text from integration_replies where thread_uuid is not null and next_at is not null`), "") {
		task := integration.ReplyTask{TenantID: s.acme.TenantID, ThreadUUID: thread}
		if thread == "" {
			lost := query[string](s, s.acme.TenantID, `select id::text from integration_replies where thread_uuid is null and next_at is not null`)
			if len(lost) == 0 {
				return
			}
			task.ReplyID = lost[0]
		}
		payload, err := json.Marshal(task)
		require.NoError(s.t, err)
		_, err = functions.DeliverReplies(s.p.Env(s.t, integration.DeliverReplies)).Invoke(s.t.Context(), payload)
		require.NoError(s.t, err)
	}
}

func (s *post) statuses() []string {
	s.t.Helper()
	return query[string](s, s.acme.TenantID, `select status || ' ' || coalesce(error, '') from integration_replies order by created_at, id`)
}

func TestAnAnswerByMail(t *testing.T) {
	s := newPost(t).withMail()
	s.receive(written(at("support"), "one", "Message-ID: <2@acme.test>", "References: <0@acme.test> <1@acme.test>"))
	s.said("", "Answer one.")
	s.deliver()
	all := s.sent()
	require.Len(t, all, 1)
	for name, want := range map[string]string{"To": "owner@acme.test", "From": "<agents@acme.test>", "Subject": "Re: Help", "In-Reply-To": "<2@acme.test>", "References": "<0@acme.test> <1@acme.test> <2@acme.test>",
		"Reply-To": s.replyAddress(s.acme.TenantID), "Auto-Submitted": "auto-replied"} {
		require.Equal(t, want, all[0].Get(name), name)
	}
	require.Equal(t, []string{all[0].Get("Message-Id")}, query[string](s, s.acme.TenantID, `select external_id from integration_replies`))
	require.Equal(t, []string{"posted "}, s.statuses())
	s.deliver()
	require.Len(t, s.sent(), 1, "once")

	// His answer goes on, and so does the next one.
	d := s.receive(written(all[0].Get("Reply-To"), "two", "Subject: Re: Help", "Message-ID: <3@acme.test>", "In-Reply-To: "+all[0].Get("Message-Id"), "References: <0@acme.test> <2@acme.test> "+all[0].Get("Message-Id")))
	require.Equal(t, "EMAIL-1", *d.ThreadID)
	s.said("", "Answer two.")
	s.deliver()
	all = s.sent()
	require.Len(t, all, 2)
	require.Equal(t, "<3@acme.test>", all[1].Get("In-Reply-To"))
	require.Equal(t, all[0].Get("Reply-To"), all[1].Get("Reply-To"))

	// A program that answers by itself ends it.
	own := written(all[1].Get("Reply-To"), "I am away", "Auto-Submitted: auto-replied")
	require.Nil(t, s.receive(own).ThreadID)
}

func TestWhoIsAnswered(t *testing.T) {
	s := newPost(t).withMail()
	s.receive(written(at("support"), "one", "Message-ID: <1@acme.test>"))
	first := query[string](s, s.acme.TenantID, `select id::text from thread_turns`)[0]
	s.exec(s.acme.TenantID, `update thread_turns set status = 'running'`)
	bob := s.user(s.acme.TenantID, "bob@acme.test", "active")
	two := written(s.replyAddress(s.acme.TenantID), "two", "Message-ID: <2@acme.test>")
	two.from = "bob@acme.test"
	s.receive(two)
	second := query[string](s, s.acme.TenantID, `select id::text from thread_turns where id <> $1`, first)[0]
	to := func() (all []string) {
		for _, h := range s.sent() {
			all = append(all, h.Get("To"))
		}
		return all
	}
	s.said(first, "Answer.")
	s.deliver()
	require.Equal(t, []string{"owner@acme.test"}, to(), "who has asked, and not who wrote last")
	s.said(second, "Answer.")
	s.deliver()
	require.Equal(t, []string{"owner@acme.test", "bob@acme.test"}, to())

	s.receive(two.again("three"))
	s.exec(s.acme.TenantID, `update users set status = 'disabled' where id = $1`, bob)
	s.failed(query[string](s, s.acme.TenantID, `select id::text from thread_turns where status = 'queued'`)[0])
	s.deliver()
	require.Equal(t, []string{"owner@acme.test", "bob@acme.test", "owner@acme.test"}, to(), "who wrote last and is a user still")

	s.receive(written(s.replyAddress(s.acme.TenantID), "four"))
	s.exec(s.acme.TenantID, `update users set status = 'disabled'`)
	s.said("", "Answer.")
	s.deliver()
	require.Len(t, to(), 3)
	require.Contains(t, s.statuses(), "failed nobody who has written is a user any more")
}

func TestAMailThatOpensNoThreadIsAnswered(t *testing.T) {
	s := newPost(t).withMail()
	s.exec(s.acme.TenantID, `update agents set status = 'suspended'`)
	s.receive(written(at("support"), "one", "Message-ID: <1@acme.test>"))
	s.deliver()
	all := s.sent()
	require.Len(t, all, 1)
	require.Equal(t, []string{"owner@acme.test", "Re: Help", "<1@acme.test>", ""}, []string{all[0].Get("To"), all[0].Get("Subject"), all[0].Get("In-Reply-To"), all[0].Get("Reply-To")})
}

// Nobody can be asked whether a mail went out: it is not sent a second time.
func TestAMailWhoseOutcomeIsUnknown(t *testing.T) {
	s := newPost(t)
	carrier := &failing{err: errors.New("the connection was lost")}
	s.p.WithMail("agents@acme.test", carrier).WithFunctions(t, map[string]handler.Constructor{mail.Function: mailfunctions.SendMail})
	s.receive(written(at("support"), "one"))
	s.said("", "Answer.")
	s.deliver()
	s.deliver()
	require.Equal(t, 1, carrier.calls)
	require.Equal(t, []string{"unknown it may have been sent"}, s.statuses())

	carrier.err = mail.ErrThrottled
	s.receive(written(at("support"), "one"))
	s.said("", "Answer.")
	s.deliver()
	carrier.err = mail.ErrRefused
	s.receive(written(at("support"), "one"))
	s.said("", "Answer.")
	s.deliver()
	require.Equal(t, []string{"unknown it may have been sent", "queued too many mails were sent; try again later",
		"failed the mail service does not send this mail: it does not accept the sender or a recipient"}, s.statuses())
}

// failing is a mail service that fails.
type failing struct {
	err   error
	calls int
}

func (f *failing) Carry(context.Context, mail.Envelope) (string, error) {
	f.calls++
	return "", f.err
}
