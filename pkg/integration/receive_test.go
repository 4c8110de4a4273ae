package integration_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/channel"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/integration"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

func TestAMessageOpensAThreadAndTheNextGoesOnInIt(t *testing.T) {
	d := newDesk(t)
	s := hello("order-17", "Where is it?")
	s["title"], s["metadata"] = "Order 17", map[string]any{"shop": "north"}
	first := d.delivered("1", s)
	require.Equal(t, integration.OK, first.Delivery.Outcome)
	require.Equal(t, "AUTO-1", *first.Delivery.ThreadID)
	require.NotEmpty(t, first.TurnID)
	th, err := thread.Get(t.Context(), d.db.App.In(d.TenantID), "AUTO-1")
	require.NoError(t, err)
	require.Equal(t, "Order 17", *th.Title)
	require.JSONEq(t, `{"generic": {"shop": "north"}}`, *th.Metadata)
	require.Equal(t, d.AgentID, th.AgentID)

	second := d.delivered("2", hello("order-17", "Are you there?"))
	require.Equal(t, "AUTO-1", *second.Delivery.ThreadID)
	require.Equal(t, first.TurnID, second.TurnID, "the turn that waits answers both")
	require.Len(t, second.Notices, 1)
	other := d.delivered("3", hello("order-18", "Hello"))
	require.Equal(t, "AUTO-2", *other.Delivery.ThreadID)

	said := d.messages("AUTO-1")
	require.Len(t, said, 2)
	require.Equal(t, []string{"Where is it?", "Are you there?"}, []string{said[0].Body, said[1].Body})
	require.JSONEq(t, fmt.Sprintf(`{"kind": "integration", "provider": "generic", "integrationId": %q, "key": "order-17", "sender": {"id": "c4", "name": "Grace"}, "address": {"conversation": "order-17"}}`, d.integration.ID), *said[1].Metadata)
	require.Zero(t, query[int](d.world, `select count(*) from messages where user_id is not null`))

	logged := d.newest()
	require.Equal(t, "AUTO-2", *logged.ThreadID)
	require.Equal(t, []any{"message", "3", string(hello("order-18", "Hello").body())}, []any{*logged.Event, *logged.ProviderID, *logged.Body})
}

// atOnce runs a test for an agent without limits, whose threads are opened in one round trip, and for one with limits, which are counted first.
func atOnce(t *testing.T, test func(t *testing.T, d *desk)) {
	t.Run("no limits", func(t *testing.T) { test(t, newDesk(t)) })
	t.Run("limits", func(t *testing.T) {
		d := newDesk(t)
		d.exec(`update agents set turns_per_minute = 1000`)
		test(t, d)
	})
}

func TestFiftyCopiesAtOnce(t *testing.T) {
	atOnce(t, func(t *testing.T, d *desk) {
		got := together(50, func(int) error {
			_, err := d.deliver("the same", hello("order-17", "Where is it?"))
			return err
		})
		for _, err := range got {
			require.NoError(t, err)
		}
		require.Equal(t, [3]int{1, 1, 1}, d.rows())
		require.Equal(t, map[integration.Outcome]int{integration.OK: 1, integration.Duplicate: 49}, d.outcomes())
	})
}

// Two deliveries of one new conversation at once make one thread with two messages, however many conversations begin at that moment.
func TestTwoFirstMessagesAtOnce(t *testing.T) {
	atOnce(t, func(t *testing.T, d *desk) {
		const conversations, each = 8, 4
		got := together(conversations*each, func(i int) integration.Received {
			r, err := d.deliver(fmt.Sprint(i), hello(fmt.Sprint("order-", i%conversations), fmt.Sprint("message ", i)))
			if err != nil {
				t.Error(err)
			}
			return r
		})
		byConversation := map[int]map[string]bool{}
		for i, r := range got {
			c := i % conversations
			if byConversation[c] == nil {
				byConversation[c] = map[string]bool{}
			}
			byConversation[c][*r.Delivery.ThreadID] = true
		}
		for c := range conversations {
			require.Len(t, byConversation[c], 1)
		}
		require.Equal(t, [3]int{conversations, conversations * each, conversations}, d.rows())
		for n := range conversations {
			require.Len(t, d.messages(fmt.Sprint("AUTO-", n+1)), each, "numbers have no gaps")
		}
	})
}

// One message comes in two deliveries, in either order and at once: the message's own id makes it one.
func TestOneMessageInTwoDeliveries(t *testing.T) {
	d := newDesk(t)
	for i := range 20 {
		s := hello(fmt.Sprint("order-", i), "Where is it?")
		s["id"] = fmt.Sprint("message-", i)
		got := together(2, func(n int) integration.Received {
			r, err := d.deliver(fmt.Sprintf("%d-%d", i, n), s)
			if err != nil {
				t.Error(err)
			}
			return r
		})
		both := []integration.Outcome{got[0].Delivery.Outcome, got[1].Delivery.Outcome}
		require.ElementsMatch(t, []integration.Outcome{integration.OK, integration.Duplicate}, both)
	}
	require.Equal(t, [3]int{20, 20, 20}, d.rows())
}

func TestWhatIsNotSignedByTheSender(t *testing.T) {
	const foreign = "the neighbour's signing secret"
	d := newDesk(t)
	other := d.neighbour("globex")
	theirs := other.desk(other.create(other.generic(func(n *integration.New) { n.Secret = is(integration.SecretGiven{Signing: new(foreign)}) })))
	alike := other.desk(other.create(other.generic(func(n *integration.New) { n.Name = is("Alike") })))
	body := hello("order-17", "Where is it?").body()
	now := time.Now()
	tampered := signed(signing, "1", now, body)
	tampered.Body = hello("order-17", "Where is he?").body()
	mixed := signed(signing, "1", now, body)
	header := mixed.Header
	mixed.Header = func(name string) string {
		if name == "X-Signature-Timestamp" {
			return fmt.Sprint(now.Unix() + 1)
		}
		return header(name)
	}
	bare := channel.Inbound{Header: func(string) string { return "" }, Body: body, Now: now}
	for name, in := range map[string]channel.Inbound{"tampered": tampered, "another time": mixed, "bare": bare, "stale": signed(signing, "1", now.Add(-6*time.Minute), body),
		"of tomorrow": signed(signing, "1", now.Add(6*time.Minute), body), "wrong secret": signed(signing+"!", "1", now, body),
		"another tenant's secret": signed(foreign, "1", now, body), "empty secret": signed("", "1", now, body)} {
		t.Run(name, func(t *testing.T) {
			_, err := d.receiver.Receive(t.Context(), d.integration.ID, in, nil)
			require.Equal(t, integration.ErrSignature, err)
			logged := d.newest()
			require.Equal(t, integration.Unverified, logged.Outcome)
			require.Nil(t, logged.Body)
			require.Equal(t, len(in.Body), logged.Size)
		})
	}
	before := query[int](d.world, `select count(*) from deliveries`)
	for _, id := range []string{ident.New(), "no id", ""} {
		_, err := d.receiver.Receive(t.Context(), id, signed(signing, "1", now, body), nil)
		require.Equal(t, integration.ErrSignature, err)
	}
	require.Equal(t, before, query[int](d.world, `select count(*) from deliveries`), "there is no tenant")

	_, err := theirs.receive(signed(signing, "1", now, body))
	require.Equal(t, integration.ErrSignature, err, "theirs is another")
	got, err := theirs.receive(signed(foreign, "1", now, body))
	require.NoError(t, err)
	require.Equal(t, "AUTO-1", *got.Delivery.ThreadID)

	// Where both tenants' secrets are the same the id decides whose it is, and nothing crosses.
	require.Equal(t, "AUTO-2", *alike.delivered("1", hello("order-17", "Hello")).Delivery.ThreadID)
	require.Equal(t, before, query[int](d.world, `select count(*) from deliveries where tenant_id = $1`, d.TenantID))
	require.Empty(t, d.outcomes()[integration.OK])
	require.Equal(t, map[integration.Outcome]int{integration.Unverified: 1, integration.OK: 2}, theirs.outcomes())
}

// Strangers do not fill the log.
func TestTheLogOfTheUnverifiedIsBounded(t *testing.T) {
	d := newDesk(t)
	body := hello("order-17", "Where is it?").body()
	for range 100 {
		_, err := d.receiver.Receive(t.Context(), d.integration.ID, signed("wrong", "1", time.Now(), body), nil)
		require.Equal(t, integration.ErrSignature, err)
	}
	require.Equal(t, map[integration.Outcome]int{integration.Unverified: 60}, d.outcomes())
	d.delivered("1", hello("order-17", "Where is it?"))
	require.Equal(t, 1, d.outcomes()[integration.OK], "and they keep nobody out")
}

func TestDisabledLimitedAndNotUnderstood(t *testing.T) {
	d := newDesk(t)
	_, err := d.receiver.Receive(t.Context(), d.integration.ID, signed(signing, "1", time.Now(), []byte(`{"conversation": 1}`)), nil)
	refused(t, err, "the body is not a JSON object of a message")
	require.Equal(t, integration.Invalid, d.newest().Outcome)
	_, err = d.receiver.Receive(t.Context(), d.integration.ID, signed(signing, "", time.Now(), hello("a", "b").body()), nil)
	refused(t, err, "X-Delivery-Id")

	d.exec(`update integrations set enabled = false`)
	got := d.delivered("2", hello("a", "b"))
	require.Equal(t, integration.Failed, got.Delivery.Outcome)
	require.Empty(t, got.TurnID+got.Refusal)
	logged := d.newest()
	require.Equal(t, []any{got.Delivery.ID, integration.Failed, "the integration is disabled"}, []any{logged.ID, logged.Outcome, *logged.Error})
	_, err = d.receiver.Receive(t.Context(), d.integration.ID, signed("wrong", "1", time.Now(), nil), nil)
	require.Equal(t, integration.ErrSignature, err, "whether it is disabled is told to who has the secret")
	d.exec(`update integrations set enabled = true, rate_limit = 3`)

	d.delivered("3", hello("a", "b"))
	_, err = d.deliver("4", hello("a", "c")) // the two that were not understood are counted, too: they were verified
	require.Equal(t, fault.RateLimitExceeded, fault.From(err).Type)
	require.Equal(t, [3]int{1, 1, 1}, d.rows())
}

func TestAnAgentThatTakesNoTurnsOrIsAtItsLimit(t *testing.T) {
	for says, arrange := range map[string]string{
		"the agent is suspended and takes no turns":          `update agents set status = 'suspended'`,
		"the agent's limit of 1 turns per minute is reached": `update agents set turns_per_minute = 1`,
	} {
		t.Run(says, func(t *testing.T) {
			d := newDesk(t)
			before := 0
			if strings.Contains(says, "limit") {
				d.answers(d.delivered("0", hello("another", "Hello")).TurnID, "Hi.")
				before = 1
			}
			d.exec(arrange)
			d.exec(`delete from integration_replies`)
			got := together(10, func(int) integration.Received {
				r, err := d.deliver("1", hello("order-17", "Where is it?"))
				if err != nil {
					t.Error(err)
				}
				return r
			})
			refusals := 0
			for _, r := range got {
				if r.Refusal != "" {
					refusals++
					require.Equal(t, says, *r.Delivery.Error)
				}
			}
			require.Equal(t, 1, refusals)
			require.Equal(t, 1, d.outcomes()[integration.Failed])
			require.Equal(t, 9, d.outcomes()[integration.Duplicate])
			require.Equal(t, [3]int{before, 2 * before, before}, d.rows())
			require.Equal(t, 1, query[int](d.world, `select count(*) from integration_replies where thread_uuid is null and address is not null`))
		})
	}
}

// In a thread that there is, a refused message is told in it, and the next one goes on.
func TestARefusalInAThread(t *testing.T) {
	d := newDesk(t)
	first := d.delivered("1", hello("order-17", "Where is it?"))
	d.answers(first.TurnID, "On its way.")
	d.exec(`update agents set status = 'suspended'`)
	second := d.delivered("2", hello("order-17", "Thanks"))
	require.NotEmpty(t, second.Refusal)
	require.Empty(t, second.TurnID)
	require.Equal(t, 1, query[int](d.world, `select count(*) from integration_replies where id = $1 and thread_uuid is not null and address->>'conversation' = 'order-17' and message_id is null`, second.Refusal))
	d.exec(`update agents set status = 'active'`)
	third := d.delivered("3", hello("order-17", "Still there?"))
	require.Equal(t, "AUTO-1", *third.Delivery.ThreadID)
	require.Len(t, d.messages("AUTO-1"), 3)
}

// What the database does not take is the platform's error: it is in the log, nothing of it stays, and the next attempt is taken.
func TestWhatThePlatformCannotTakeIn(t *testing.T) {
	d := newDesk(t)
	d.exec(`alter table integration_threads rename to gone`)
	_, err := d.deliver("1", hello("order-17", "Where is it?"))
	require.Equal(t, fault.InternalError, fault.From(err).Type)
	logged := d.newest()
	require.Equal(t, integration.Failed, logged.Outcome)
	require.Equal(t, "internal error", *logged.Error)
	d.exec(`alter table gone rename to integration_threads`)
	require.Equal(t, integration.OK, d.delivered("1", hello("order-17", "Where is it?")).Delivery.Outcome)
	require.Equal(t, [3]int{1, 1, 1}, d.rows())
}

// A question that a turn puts to a person is answered from outside, by no user.
func TestAQuestionIsAnsweredFromOutside(t *testing.T) {
	d := newDesk(t)
	first := d.delivered("1", hello("order-17", "Send it"))
	call, err := json.Marshal(thread.ToolResult{ToolCallID: "call-1", Name: "ask_user"})
	require.NoError(t, err)
	d.exec(`update thread_turns set status = 'waiting', waits_for = 'answer', lease_until = null where id = $1`, first.TurnID)
	d.exec(`update threads set status = 'waiting'`)
	d.exec(`insert into turn_steps (tenant_id, turn_id, number, kind, name, status, response) values ($1, $2, 1, 'tool', 'ask_user', 'waiting', $3)`, d.TenantID, first.TurnID, call)
	require.Error(t, d.db.App.InTenant(t.Context(), d.TenantID, func(tx pgx.Tx) error {
		_, err := turn.Request(t.Context(), tx, d.TenantID, turn.Ask{ThreadID: "AUTO-1", Body: "by nobody"})
		return err
	}))
	second := d.delivered("2", hello("order-17", "To Berlin"))
	require.Equal(t, first.TurnID, second.TurnID)
	require.Equal(t, "call-1", query[string](d.world, `select tool_call_id from messages where body = 'To Berlin' and user_id is null`))
	require.Equal(t, "running", query[string](d.world, `select status from thread_turns`))
	require.Contains(t, query[string](d.world, `select response::text from turn_steps`), `To Berlin`)
}

// Ids of outside may be longer than an index holds, or what no text is: they tell messages apart all the same.
func TestStrangeIDs(t *testing.T) {
	d := newDesk(t)
	take := func(delivery, conversation, message string) integration.Delivery {
		logged := integration.Arrived(d.TenantID, integration.Generic, nil)
		logged.IntegrationID, logged.ProviderID = &d.integration.ID, &delivery
		got, err := integration.Take(t.Context(), d.db.App, integration.Taking{Integration: d.integration, Delivery: logged,
			Said: channel.Said{Key: conversation, MessageKey: message, Opens: true, Body: "Hello", Address: json.RawMessage(`{}`)}})
		require.NoError(t, err)
		return got.Delivery
	}
	long := strings.Repeat("0123456789", 5000)
	for i, id := range []string{"", "\x00", "\xff", long, long + "1"} {
		require.Equal(t, fmt.Sprint("AUTO-", i+1), *take("d"+id, "c"+id, "m"+id).ThreadID)
		require.Equal(t, integration.Duplicate, take("other"+id, "c"+id, "m"+id).Outcome)
		require.Equal(t, fmt.Sprint("AUTO-", i+1), *take("next"+id, "c"+id, "n"+id).ThreadID)
	}
}

// An instance that has taken something in sees what is changed meanwhile.
func TestAChangeCountsFromTheNextDeliveryOn(t *testing.T) {
	d := newDesk(t)
	d.delivered("1", hello("order-1", "Hello"))
	other := ident.New()
	d.exec(`insert into agents (tenant_id, id, name, status, template_id) values ($1, $2, 'Grace', 'active', $3)`, d.TenantID, other, d.TemplateID)
	_, err := d.update(d.integration.ID, integration.Settings{AgentID: is(other)})
	require.NoError(t, err)
	d.delivered("2", hello("order-1", "And?"))
	d.delivered("3", hello("order-2", "Hello"))
	require.Equal(t, []string{d.AgentID, other}, query[[]string](d.world, `select array_agg(agent_id::text order by number) from threads`))
}

// What a turn may cost is what the agent's own model costs, where it has one.
func TestAMessageReservesForTheAgentsOwnModel(t *testing.T) {
	d := newDesk(t)
	d.exec(`insert into budgets (tenant_id, scope, scope_id, monthly_micros) values ($1, 'tenant', $1, 1000000000)`, d.TenantID)
	d.exec(`update agents set model_id = 'vendor.new-1'`)
	refused := d.delivered("1", hello("order-17", "Where is it?"))
	require.Equal(t, integration.Failed, refused.Delivery.Outcome)
	require.Contains(t, *refused.Delivery.Error, "the price of the model vendor.new-1 is not known")
	d.exec(`update agent_templates set model_id = 'vendor.new-2'`)
	d.exec(`update agents set model_id = $1`, pgtest.ModelID)
	require.Equal(t, integration.OK, d.delivered("2", hello("order-17", "Are you there?")).Delivery.Outcome)
	require.Equal(t, 1, query[int](d.world, `select count(*) from budget_reservations`))
}
