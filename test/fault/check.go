package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// history is a thread as the API tells it once all its turns are over.
type history struct {
	ID, Status string
	Messages   struct{ Items []message }
	Turns      struct{ Items []turn }
}

type message struct{ ID, Role, Body, TurnID string }

// event is one of a thread.
type event struct {
	Typename, MessageID, Chunk string
	Sequence                   int
	Message                    message
}

// read reads a thread.
func (t *tenant) read(ctx context.Context, thread string) (history, error) {
	var answer struct{ GetThread history }
	err := t.again(ctx, `query ($id: ID!) { getThread(id: $id) { id status messages(limit: 100) { items { id role body turnId } } turns(limit: 100) { items { `+turnFields+` } } } }`,
		vars{"id": thread}, &answer)
	h := answer.GetThread
	slices.SortFunc(h.Turns.Items, func(a, b turn) int { return strings.Compare(a.ID, b.ID) })
	return h, err
}

// turn is one of the thread's.
func (h history) turn(id string) (t turn) {
	for _, t = range h.Turns.Items {
		if t.ID == id {
			return t
		}
	}
	return turn{}
}

// replies are what a turn has said.
func (h history) replies(turnID string) (found []message) {
	for _, m := range h.Messages.Items {
		if m.Role == "assistant" && m.TurnID == turnID {
			found = append(found, m)
		}
	}
	return found
}

// overlaps are turns of the thread that ran at the same time. A turn that waits for a person rests in between.
func (h history) overlaps() (found []string) {
	for i, a := range h.Turns.Items {
		for _, b := range h.Turns.Items[i+1:] {
			if a.StartedAt != nil && b.StartedAt != nil && a.FinishedAt != nil && b.FinishedAt != nil && a.StartedAt.Before(*b.FinishedAt) && b.StartedAt.Before(*a.FinishedAt) {
				found = append(found, fmt.Sprintf("%s: turns %s (%s to %s) and %s (%s to %s) ran at the same time", h.ID, a.ID, a.StartedAt, a.FinishedAt, b.ID, b.StartedAt, b.FinishedAt))
			}
		}
	}
	return found
}

// told compares the thread's events with the thread: no gap, each message once, and each reply as its chunks tell it.
func (t *tenant) told(ctx context.Context, h history) (wrong []string, err error) {
	complain := func(format string, args ...any) { wrong = append(wrong, h.ID+": "+fmt.Sprintf(format, args...)) }
	last, chunks := 0, map[string]string{}
	var messages []message
	for {
		var answer struct {
			ThreadEvents struct {
				Items []map[string]json.RawMessage
				Last  int
			}
		}
		err := t.again(ctx, `query ($id: ID!, $after: Int!) { threadEvents(threadId: $id, after: $after, limit: 1000) { last items { __typename
			... on NewMessageEvent { sequence message { id role body turnId } } ... on StreamChunkEvent { sequence messageId chunk }
			... on AgentStatusEvent { sequence } ... on ThreadUpdateEvent { sequence } } } }`, vars{"id": h.ID, "after": last}, &answer)
		if err != nil {
			return nil, err
		}
		for _, raw := range answer.ThreadEvents.Items {
			e, err := readEvent(raw)
			if err != nil {
				return nil, err
			}
			if last++; e.Sequence != last {
				complain("event %d comes where %d was expected", e.Sequence, last)
				last = e.Sequence
			}
			switch e.Typename {
			case "StreamChunkEvent":
				chunks[e.MessageID] += e.Chunk
			case "NewMessageEvent":
				messages = append(messages, e.Message)
			}
		}
		if last >= answer.ThreadEvents.Last || len(answer.ThreadEvents.Items) == 0 {
			break
		}
	}
	kept := h.Messages.Items
	if strings.HasPrefix(h.ID, "AUTO-") { // nobody can have listened when a webhook's call opened it
		kept = kept[1:]
	}
	if !slices.Equal(messages, kept) {
		complain("%d messages are told of, and there are %d, or others", len(messages), len(kept))
	}
	for _, m := range h.Messages.Items {
		if m.Role == "assistant" && chunks[m.ID] != m.Body {
			complain("the reply %q was streamed as %q", m.Body, chunks[m.ID])
		}
	}
	return wrong, nil
}

func readEvent(raw map[string]json.RawMessage) (e event, err error) {
	for name, to := range map[string]any{"__typename": &e.Typename, "sequence": &e.Sequence, "messageId": &e.MessageID, "chunk": &e.Chunk, "message": &e.Message} {
		if value, there := raw[name]; there {
			if err := json.Unmarshal(value, to); err != nil {
				return e, err
			}
		}
	}
	return e, nil
}

// money is what the agent's budget has spent and set aside, in millionths of a US dollar.
func (t *tenant) money(ctx context.Context) (spent, reserved int64, err error) {
	var answer struct {
		ListBudgets struct {
			Items []struct{ ScopeID, SpentUSD, ReservedUSD string }
		}
	}
	if err := t.again(ctx, `{ listBudgets(limit: 100) { items { scopeId spentUsd reservedUsd } } }`, nil, &answer); err != nil {
		return 0, 0, err
	}
	for _, b := range answer.ListBudgets.Items {
		if b.ScopeID == t.agent {
			spent, err = micros(&b.SpentUSD)
			if err == nil {
				reserved, err = micros(&b.ReservedUSD)
			}
			return spent, reserved, err
		}
	}
	return 0, 0, fmt.Errorf("%s has no budget", t.name)
}

// micros reads an amount of six fractional digits.
func micros(usd *string) (int64, error) {
	if usd == nil {
		return 0, nil
	}
	return strconv.ParseInt(strings.Replace(*usd, ".", "", 1), 10, 64)
}

// costs is what the turns cost by their records.
func costs(turns ...turn) (sum int64, err error) {
	for _, t := range turns {
		cost, err := micros(t.CostUSD)
		if err != nil {
			return 0, err
		}
		sum += cost
	}
	return sum, nil
}

// verify runs the audit log's verifier, which looks at the newest anchor too: there may have been none since the last start.
func (m *machine) verify(ctx context.Context, verifier string) (report string, ok bool) {
	deadline := time.Now().Add(waitTime)
	for {
		o := m.up.Outputs
		cmd := exec.CommandContext(ctx, verifier, "verify")
		cmd.Dir = m.dir
		cmd.Env = []string{"HOME=" + m.dir, "AWS_REGION=" + o.Region, "AWS_ENDPOINT_URL_S3=" + o.S3Endpoint, "AWS_ACCESS_KEY_ID=" + o.S3AccessKeyID, "AWS_SECRET_ACCESS_KEY=" + o.S3SecretAccessKey,
			"DATABASE_URL=" + o.DatabaseReaderURL, "ANCHOR_BUCKET=" + o.AnchorBucket, "ANCHOR_PUBLIC_KEY=" + o.AnchorPublicKey, "ANCHOR_ORIGIN=" + o.AnchorOrigin}
		out, err := cmd.CombinedOutput()
		if err == nil || ctx.Err() != nil || time.Now().After(deadline) {
			return string(out), err == nil
		}
		pause(ctx, time.Second)
	}
}
