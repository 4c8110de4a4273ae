//go:build long

package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// tracked is a task of a task tracker, to which two things happen: each is in the task's thread once, and was pushed at most once, whoever died over it.
func (l *lane) tracked(t *testing.T, c cut) {
	key := "tracked-" + c.key()
	hook := l.trackerHook(t, key)
	l.assignee(t, key)
	first, second := l.event(t, key, "Todo"), l.event(t, key, "Done")
	deliver := func(body []byte) (outcome string, err error) {
		mac := hmac.New(sha256.New, []byte(shared))
		mac.Write(body)
		var told struct{ Outcome string }
		status, err := l.post(t.Context(), "/integrations/linear/webhook?token="+hook, json.RawMessage(body), &told,
			"Content-Type", "application/json", "Linear-Signature", hex.EncodeToString(mac.Sum(nil)))
		if err == nil {
			require.Equal(t, http.StatusOK, status)
		}
		return told.Outcome, err
	}
	l.kill(t, c.point, 1, func() { _, _ = deliver(first) })
	l.restartBy(t, c.point, func() { _, _ = deliver(second) })
	for _, body := range [][]byte{first, second} {
		outcome, err := deliver(body)
		require.NoError(t, err)
		require.Equal(t, "duplicate", outcome)
	}
	l.leasesEnd(t)
	l.nothingLeft(t)

	var found struct {
		ListThreads struct{ Items []struct{ ID, Title string } }
	}
	require.NoError(t, l.query(t.Context(), `{ listThreads(filter: {channel: TASK}, limit: 100) { items { id title } } }`, nil, &found))
	found.ListThreads.Items = slices.DeleteFunc(found.ListThreads.Items, func(th struct{ ID, Title string }) bool { return th.Title != key })
	require.Len(t, found.ListThreads.Items, 1)
	h, err := l.read(t.Context(), found.ListThreads.Items[0].ID)
	require.NoError(t, err)
	l.whole(t, h, "open", 0, nil)
	var said []string
	for _, m := range h.Messages.Items {
		require.Equal(t, "system", m.Role)
		said = append(said, m.Body)
	}
	require.ElementsMatch(t, []string{"Bo moved “" + key + "” to Todo", "Bo moved “" + key + "” to Done"}, said)
	pushed := l.pushes(t, key)
	slices.Sort(pushed)
	require.Equal(t, pushed, slices.Compact(slices.Clone(pushed)), "a push was sent twice")
	if c.lost {
		require.Empty(t, pushed, "who died between the claim and the sending has sent nothing, and nobody else does")
	} else {
		require.Len(t, pushed, 2)
	}
}

// trackerHook makes a webhook of Linear's, and gives its token.
func (l *lane) trackerHook(t *testing.T, name string) string {
	t.Helper()
	var made struct{ Token string }
	status, err := l.post(t.Context(), "/api/webhooks", vars{"name": name, "target_type": "task", "config": vars{"provider": "linear"}, "agent_id": l.agent, "signing_secret": shared}, &made,
		"Content-Type", "application/json", "Authorization", l.token)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, status)
	return made.Token
}

// assignee makes the user the person of that id in Linear, with a device. He would have to connect again, so that nobody asks Linear.
func (l *lane) assignee(t *testing.T, person string) {
	t.Helper()
	var made struct{ CreateIntegration struct{ ID string } }
	require.NoError(t, l.query(t.Context(), `mutation ($input: CreateIntegrationInput!) { createIntegration(input: $input) { id } }`, vars{"input": vars{
		"name": person, "provider": "linear", "config": `{"clientId":"fault","redirectUris":["https://console.fault.test/"]}`, "secret": vars{"token": shared}}}, &made))
	var device struct{ RegisterDevice struct{ ID string } }
	require.NoError(t, l.query(t.Context(), `mutation { registerDevice(input: {platform: apns, token: "00ff"}) { id } }`, nil, &device))
	conn := l.database(t)
	defer conn.Close(t.Context())
	_, err := conn.Exec(t.Context(), `insert into connections (tenant_id, id, user_id, integration_id, provider, provider_user_id, status, reason)
		select tenant_id, gen_random_uuid(), user_id, $2, 'linear', $3, 'reconnect', 'a test' from devices where id = $1`, device.RegisterDevice.ID, made.CreateIntegration.ID, person)
	require.NoError(t, err)
}

// event is a delivery of Linear's: Bo has given the task of that name a status.
func (l *lane) event(t *testing.T, key, status string) []byte {
	t.Helper()
	now := time.Now()
	body, err := json.Marshal(vars{"type": "Issue", "action": "update", "organizationId": "fault", "createdAt": now.UTC(), "webhookTimestamp": now.UnixMilli(),
		"actor": vars{"id": "bo", "name": "Bo"}, "updatedFrom": vars{"stateId": "x"},
		"data": vars{"id": key, "title": key, "assigneeId": key, "updatedAt": now.UTC(), "state": vars{"name": status, "type": "started"}}})
	require.NoError(t, err)
	return body
}

// leasesEnd has the time go by that whoever was killed has an event for, and the platform look at what is left.
func (l *lane) leasesEnd(t *testing.T) {
	t.Helper()
	conn := l.database(t)
	_, err := conn.Exec(t.Context(), `update task_events set next_at = clock_timestamp() - interval '1 second' where next_at is not null`)
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))
	l.stop()
	<-l.ended
	l.revive(t)
}

// pushes are the notifications about a task that were sent.
func (l *lane) pushes(t *testing.T, title string) (bodies []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(l.data(), "outbox", "*.json"))
	require.NoError(t, err)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		var p struct {
			Title   string
			Payload struct {
				Aps struct{ Alert struct{ Body string } }
			}
		}
		require.NoError(t, json.Unmarshal(raw, &p))
		if p.Title == title {
			bodies = append(bodies, p.Payload.Aps.Alert.Body)
		}
	}
	return bodies
}
