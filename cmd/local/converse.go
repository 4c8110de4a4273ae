package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"github.com/agentplatform/agentplatform/pkg/local"
)

const (
	firstUser = "alice@acme.test"
	firstBody = "Hello! Who are you, and what can you do for me?"
)

// converse holds the first conversation, over the public API, and prints it as it happens.
func converse(ctx context.Context, p *local.Platform, began time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	c, err := signIn(ctx, p.Outputs, firstUser, p.Password)
	if err != nil {
		return fmt.Errorf("signing in: %w", err)
	}
	var opened struct{ CreateThread struct{ ID string } }
	if err := c.query(ctx, `mutation { createThread(input: {title: "First conversation"}) { id } }`, nil, &opened); err != nil {
		return fmt.Errorf("creating a thread: %w", err)
	}
	thread := opened.CreateThread.ID
	fmt.Printf("%s opened %s\n", firstUser, thread)
	socket, err := c.subscribe(ctx, `subscription ($thread: ID!) { onThreadEvent(threadId: $thread) { __typename
		... on StreamChunkEvent { chunk done } ... on AgentStatusEvent { status activity } ... on NewMessageEvent { message { role body turnId } } } }`,
		map[string]any{"thread": thread})
	if err != nil {
		return fmt.Errorf("subscribing: %w", err)
	}
	defer socket.CloseNow()
	var sent struct{ SendMessage struct{ TurnID string } }
	if err := c.query(ctx, `mutation ($thread: ID!, $body: String!) { sendMessage(input: {threadId: $thread, body: $body}) { turnId } }`,
		map[string]any{"thread": thread, "body": firstBody}, &sent); err != nil {
		return fmt.Errorf("sending a message: %w", err)
	}
	fmt.Printf("\nyou    %s\n", firstBody)
	if err := show(ctx, socket, began); err != nil {
		return fmt.Errorf("reading the reply: %w", err)
	}
	return showTurn(ctx, c, sent.SendMessage.TurnID)
}

// event is what converse subscribes to.
type event struct {
	Typename string `json:"__typename"`
	Chunk    string
	Status   string
	Activity string
	Message  struct{ Role, Body string }
}

// show prints the reply while it streams, until the agent's message is in the thread.
func show(ctx context.Context, socket *websocket.Conn, began time.Time) error {
	chunks := 0
	for {
		var f frame
		if err := wsjson.Read(ctx, socket, &f); err != nil {
			return err
		}
		var payload struct{ Data struct{ OnThreadEvent event } }
		if f.Type != "data" {
			continue
		}
		if err := json.Unmarshal(f.Payload, &payload); err != nil {
			return err
		}
		e := payload.Data.OnThreadEvent
		switch {
		case e.Typename == "StreamChunkEvent":
			if chunks == 0 {
				fmt.Print("agent  ")
			}
			chunks++
			fmt.Print(e.Chunk)
		case e.Typename == "AgentStatusEvent" && e.Status == "error":
			return fmt.Errorf("the turn failed: %s", e.Activity)
		case e.Typename == "NewMessageEvent" && e.Message.Role == "assistant":
			fmt.Printf("\n\nchunks: %d; first reply %s after the start\n", chunks, time.Since(began).Round(time.Millisecond))
			return nil
		}
	}
}

// showTurn prints the durable record of the turn.
func showTurn(ctx context.Context, c *client, id string) error {
	var answer struct {
		Turn struct {
			Status                    string
			Model, CostUSD            *string
			InputTokens, OutputTokens int
			Phases                    []struct {
				Name       string
				StartedAt  time.Time
				DurationMs *float64
			}
		}
	}
	if err := c.query(ctx, `query ($id: ID!) { turn(id: $id) { status model inputTokens outputTokens costUsd phases { name startedAt durationMs } } }`,
		map[string]any{"id": id}, &answer); err != nil {
		return fmt.Errorf("reading the turn: %w", err)
	}
	t := answer.Turn
	fmt.Printf("\nturn %s  %s\n", id, t.Status)
	for _, p := range t.Phases {
		took := "–"
		if p.DurationMs != nil {
			took = fmt.Sprintf("%.3f ms", *p.DurationMs)
		}
		fmt.Printf("  %-10s  %s  %12s\n", p.Name, p.StartedAt.Format("15:04:05.000000"), took)
	}
	cost := "unknown"
	if t.CostUSD != nil {
		cost = "$" + *t.CostUSD
	}
	fmt.Printf("  %s, %d tokens in, %d tokens out, cost %s\n\n", text(t.Model), t.InputTokens, t.OutputTokens, cost)
	return nil
}

func text(s *string) string {
	if s == nil {
		return "no model"
	}
	return *s
}

// announce prints where everything is and a command to copy.
func announce(p *local.Platform) {
	o := p.Outputs
	quoted, _ := json.Marshal(p.Password) // a string
	fmt.Printf(`web app     %s
API         %s/graphql
AppSync     %s/graphql
real time   %s/graphql
outputs     %s/local/outputs.json
users       alice@acme.test (owner), max@acme.test (member), bob@globex.test (owner), ops@acme.test (platform operator)
password: %s

Try it:

  TOKEN=$(curl -s %[2]s/ -H 'Content-Type: application/x-amz-json-1.1' -H 'X-Amz-Target: AWSCognitoIdentityProviderService.InitiateAuth' \
    -d '{"AuthFlow":"USER_PASSWORD_AUTH","ClientId":"%[7]s","AuthParameters":{"USERNAME":"%[8]s","PASSWORD":%[9]s}}' | sed 's/.*"IdToken":"\([^"]*\)".*/\1/')
  curl -s %[2]s/graphql -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \
    -d '{"query":"{ listThreads(limit: 5) { items { id title status agent { name } messages(limit: 2) { items { role body } } } } }"}'

  # Verify the audit log: every hash, root, signature and lock.
  (. <(curl -s %[2]s/local/verify.env) && go run ./cmd/audit-verifier verify)

Ctrl-C stops the platform; its data stays.
`, o.WebAppURL, o.APIURL, o.AppSyncURL, o.RealtimeURL, o.APIURL, p.Password, o.ClientID, firstUser, quoted)
}
