//go:build long

package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const shared = "a secret of the sender's and the platform's"

// signature is how both sides of a generic integration sign: the sender from the time on, the platform with "reply." before it.
func signature(from string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(shared))
	mac.Write([]byte(from + "."))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// inbox is where answers arrive; it outlives the platform, and takes each once, by its id.
type inbox struct {
	*httptest.Server
	mutex sync.Mutex
	taken map[string]bool
	said  []string
	wrong []string
}

func newInbox() *inbox {
	in := &inbox{taken: map[string]bool{}}
	in.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		in.mutex.Lock()
		defer in.mutex.Unlock()
		var answer struct{ ID, Message string }
		id := r.Header.Get("X-Delivery-Id")
		if err != nil || json.Unmarshal(body, &answer) != nil || answer.ID != id || r.Header.Get("X-Signature-256") != signature("reply."+r.Header.Get("X-Signature-Timestamp"), body) {
			in.wrong = append(in.wrong, string(body))
			return
		}
		if !in.taken[id] {
			in.taken[id] = true
			in.said = append(in.said, answer.Message)
		}
	}))
	return in
}

func (in *inbox) all() []string {
	in.mutex.Lock()
	defer in.mutex.Unlock()
	return append([]string(nil), in.said...)
}

// sender is another system, whose conversation comes in as signed deliveries.
type sender struct {
	l    *lane
	url  string
	name string // of the conversation
}

// deliver hands a message over, as its sender does again and again until it is taken.
func (s sender) deliver(ctx context.Context, id string) (outcome string, err error) {
	body, err := json.Marshal(vars{"conversation": s.name, "id": id, "title": s.name, "message": s.body(id)})
	if err != nil {
		return "", err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.l.api+s.url, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	at := strconv.FormatInt(time.Now().Unix(), 10)
	for name, value := range map[string]string{"Content-Type": "application/json", "X-Delivery-Id": id, "X-Signature-Timestamp": at, "X-Signature-256": signature(at, body)} {
		r.Header.Set(name, value)
	}
	answer, err := web.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	var told struct{ Outcome string }
	if err := json.NewDecoder(answer.Body).Decode(&told); err != nil {
		return "", err
	}
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("HTTP status %d", answer.StatusCode)
	}
	return told.Outcome, nil
}

func (s sender) body(id string) string { return "/say This is " + id + "." }

// outside is a conversation of another system: each of its messages comes in once, however often it is delivered, and each answer goes back once, in order.
func (l *lane) outside(t *testing.T, c cut) {
	key := "outside-" + c.key()
	in := newInbox()
	defer in.Close()
	config, err := json.Marshal(vars{"replyUrl": in.URL + "/answers"})
	require.NoError(t, err)
	var made struct{ CreateIntegration struct{ URL string } }
	require.NoError(t, l.query(t.Context(), `mutation ($input: CreateIntegrationInput!) { createIntegration(input: $input) { url } }`, vars{"input": vars{
		"name": key, "provider": "generic", "agentId": l.agent, "config": string(config), "secret": vars{"signing": shared}}}, &made))
	s := sender{l, made.CreateIntegration.URL, key}
	first, second := key+"-1", key+"-2"
	l.kill(t, c.point, c.first(), func() { _, _ = s.deliver(t.Context(), first) })
	l.restartBy(t, c.second(), func() { _, _ = s.deliver(t.Context(), second) })
	for _, id := range []string{first, second, first, second} {
		outcome, err := s.deliver(t.Context(), id)
		require.NoError(t, err)
		if id == first {
			require.Equal(t, "duplicate", outcome)
		}
	}
	var found struct {
		ListThreads struct{ Items []struct{ ID, Title string } }
	}
	require.NoError(t, l.query(t.Context(), `query ($agent: ID!) { listThreads(filter: {agentId: $agent, channel: AUTO}, limit: 100) { items { id title } } }`, vars{"agent": l.agent}, &found))
	var threads []string
	for _, th := range found.ListThreads.Items {
		if th.Title == key {
			threads = append(threads, th.ID)
		}
	}
	require.Len(t, threads, 1)
	l.nothingLeft(t)
	h, err := l.read(t.Context(), threads[0])
	require.NoError(t, err)
	var turnIDs, answers []string
	for _, turn := range h.Turns.Items {
		require.Equal(t, "succeeded", turn.Status)
		turnIDs = append(turnIDs, turn.ID)
		for _, m := range h.replies(turn.ID) {
			answers = append(answers, m.Body)
		}
	}
	l.whole(t, h, "open", 1, []string{s.body(first), s.body(second)}, turnIDs...)
	require.Equal(t, answers, in.all())
	require.Empty(t, in.wrong)
}
