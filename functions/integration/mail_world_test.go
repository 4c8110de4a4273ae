package integration_test

import (
	"bytes"
	"context"
	"encoding/json"
	netmail "net/mail"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	functions "github.com/agentplatform/agentplatform/functions/integration"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/integration"
	"github.com/agentplatform/agentplatform/pkg/local/bucket"
	"github.com/agentplatform/agentplatform/pkg/object"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// post is SES, and two tenants that get mail: support@ is acme's, sales@ globex'.
type post struct {
	t            *testing.T
	p            *handlertest.Platform
	mails        *object.Bucket
	acme, globex desk
	support      integration.Integration
}

func newPost(t *testing.T) *post {
	server, err := bucket.Start(t.Context(), bucket.Config{Dir: t.TempDir(), RootKey: "root", RootSecret: "root-secret", ReaderKey: "reader", ReaderSecret: "reader-secret", Buckets: []bucket.Bucket{{Name: "mail"}}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop(context.Background())) })
	mails := object.New(object.Config{Region: "us-east-1", Endpoint: server.Endpoint(), AccessKey: "root", Secret: "root-secret", PathStyle: true}).In("mail")
	p := handlertest.New(t).WithReceived(mails)
	s := &post{t: t, p: p, mails: mails, acme: desk{p.DB.World(t, "acme"), t, p}, globex: desk{p.DB.World(t, "globex"), t, p}}
	s.support = s.acme.made(args{"name": "Support", "provider": "email", "agentId": s.acme.AgentID, "config": `{"address": "support"}`})
	s.globex.made(args{"name": "Sales", "provider": "email", "agentId": s.globex.AgentID, "config": `{"address": "sales"}`})
	return s
}

// at is an address where mail is received.
func at(local string) string { return local + "@" + handlertest.MailDomain }

// letter is a mail on its way, and what SES finds.
type letter struct {
	id      string // "": a new one
	from    string
	sender  string // of the envelope; "": as from, "<>": none
	to      []string
	headers []string
	body    string
	spf, dkim, dmarc,
	spam string // "": PASS
}

// written is a mail of the owner of acme.
func written(to, body string, headers ...string) letter {
	return letter{from: "owner@acme.test", to: []string{to}, body: body, headers: append([]string{"Subject: Help"}, headers...)}
}

// again is another mail of the same writer.
func (l letter) again(body string) letter {
	l.id, l.body, l.headers = "", body, nil
	return l
}

func (l letter) raw() []byte {
	headers := append([]string{"Received: from mx", "From: Somebody <" + l.from + ">", "To: " + strings.Join(l.to, ", "), "Date: " + time.Now().Format(time.RFC1123Z)}, l.headers...)
	return []byte(strings.Join(headers, "\r\n") + "\r\n\r\n" + strings.ReplaceAll(l.body, "\n", "\r\n"))
}

func (l letter) event() events.SimpleEmailEvent {
	verdict := func(given string) events.SimpleEmailVerdict {
		if given == "" {
			given = "PASS"
		}
		return events.SimpleEmailVerdict{Status: given}
	}
	sender := l.sender
	switch sender {
	case "":
		sender = l.from
	case "<>":
		sender = ""
	}
	var ses events.SimpleEmailService
	ses.Mail.MessageID, ses.Mail.Source, ses.Mail.CommonHeaders.From = l.id, sender, []string{"Somebody <" + l.from + ">"}
	ses.Receipt = events.SimpleEmailReceipt{Recipients: l.to, SPFVerdict: verdict(l.spf), DKIMVerdict: verdict(l.dkim), DMARCVerdict: verdict(l.dmarc), SpamVerdict: verdict(l.spam), VirusVerdict: verdict("")}
	return events.SimpleEmailEvent{Records: []events.SimpleEmailRecord{{EventSource: "aws:ses", SES: ses}}}
}

// put stores the mail, as SES does first.
func (s *post) put(l letter) letter {
	s.t.Helper()
	if l.id == "" {
		l.id = strings.ReplaceAll(ident.New(), "-", "")
	}
	s.store(l.id, l.raw())
	return l
}

func (s *post) store(id string, raw []byte) {
	s.t.Helper()
	_, err := s.mails.Put(s.t.Context(), "in/"+id, bytes.NewReader(raw), object.PutOptions{})
	require.NoError(s.t, err)
}

func (s *post) call(e events.SimpleEmailEvent) error {
	s.t.Helper()
	payload, err := json.Marshal(e)
	require.NoError(s.t, err)
	_, err = functions.ReceiveMail(s.p.Env(s.t, "receive-mail")).Invoke(s.t.Context(), payload)
	return err
}

// receive has a mail taken in, and gives the log's newest row of the tenant.
func (s *post) receive(l letter) integration.Delivery {
	s.t.Helper()
	require.NoError(s.t, s.call(s.put(l).event()))
	return s.logged()[0]
}

// logged is acme's log, the newest first.
func (s *post) logged() []integration.Delivery {
	s.t.Helper()
	found, err := s.acme.deliveries(tenant.Owner, args{"limit": 100})
	require.Nil(s.t, err)
	return found.Items
}

// message is one of a thread's.
type message struct {
	Thread, Channel, Body string
	Title, UserID         *string
	Metadata              map[string]any
}

func (s *post) messages() []message {
	s.t.Helper()
	found, err := postgres.All(s.t.Context(), s.p.DB.App.In(s.acme.TenantID), func(row pgx.CollectableRow) (m message, err error) {
		err = row.Scan(&m.Thread, &m.Channel, &m.Title, &m.Body, &m.UserID, &m.Metadata)
		return m, err
	}, `select t.prefix || '-' || t.number, t.channel, t.title, m.body, m.user_id::text, m.metadata from messages m join threads t on t.tenant_id = m.tenant_id and t.uuid = m.thread_uuid order by m.id`)
	require.NoError(s.t, err)
	return found
}

func query[T any](s *post, tenantID, sql string, a ...any) []T {
	s.t.Helper()
	found, err := postgres.All(s.t.Context(), s.p.DB.App.In(tenantID), pgx.RowTo[T], sql, a...)
	require.NoError(s.t, err)
	return found
}

func (s *post) exec(tenantID, sql string, a ...any) {
	s.t.Helper()
	var b pgx.Batch
	b.Queue(sql, a...)
	require.NoError(s.t, s.p.DB.App.Once(s.t.Context(), tenantID, &b))
}

// user is another user of a tenant.
func (s *post) user(tenantID, email, status string) string {
	s.t.Helper()
	id := ident.New()
	s.exec(tenantID, `insert into users (tenant_id, id, email, role, status) values ($1, $2, $3, 'member', $4)`, tenantID, id, email, status)
	return id
}

// replyAddress is where the newest thread is answered.
func (s *post) replyAddress(tenantID string) string {
	s.t.Helper()
	tokens := query[string](s, tenantID, `select reply_token::text from integration_threads order by created_at desc`)
	return at("reply+" + strings.ReplaceAll(tokens[0], "-", ""))
}

// said has the agent answer a turn, as its end does; "": the newest one.
func (s *post) said(turnID, body string) {
	s.t.Helper()
	if turnID == "" {
		turns := query[string](s, s.acme.TenantID, `select id::text from thread_turns order by queued_at desc, id desc limit 1`)
		turnID = turns[0]
	}
	s.exec(s.acme.TenantID, `with t as (update thread_turns set status = 'succeeded', lease_until = null, finished_at = clock_timestamp() where id = $1 returning *),
			th as (update threads x set message_count = message_count + 1 from t where x.uuid = t.thread_uuid returning x.uuid, x.message_count)
		insert into messages (tenant_id, id, thread_uuid, position, role, body, turn_id, turn_number)
		select t.tenant_id, $2, t.thread_uuid, th.message_count, 'assistant', $3, t.id, t.number from t, th`, turnID, ident.New(), body)
}

// failed ends a turn without an answer.
func (s *post) failed(turnID string) {
	s.t.Helper()
	s.exec(s.acme.TenantID, `update thread_turns set status = 'failed', error = 'a secret reason', lease_until = null, finished_at = clock_timestamp() where id = $1`, turnID)
}

// sent are the mails that went out, oldest first.
func (s *post) sent() (all []netmail.Header) {
	s.t.Helper()
	entries, _, err := s.p.Outbox().List("", 100)
	require.NoError(s.t, err)
	for _, e := range slices.Backward(entries) {
		raw, err := s.p.Outbox().Read(e.ID)
		require.NoError(s.t, err)
		m, err := netmail.ReadMessage(bytes.NewReader(raw))
		require.NoError(s.t, err)
		all = append(all, m.Header)
	}
	return all
}
