package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

// ReadThread reads the last messages of another thread of the tenant.
func ReadThread(db *postgres.DB) Tool {
	return Tool{
		Name:        "read_thread",
		Description: "Reads the last messages of a thread, oldest first.",
		Schema: json.RawMessage(`{"type":"object","properties":{
			"threadId":{"type":"string","description":"The thread's id, for example CHAT-12."},
			"limit":{"type":"integer","minimum":1,"maximum":50,"description":"How many messages; 20 without it."}},
			"required":["threadId"],"additionalProperties":false}`),
		Idempotent: true,
		Run: func(ctx context.Context, c Call) (any, error) {
			var in struct {
				ThreadID string `json:"threadId"`
				Limit    *int   `json:"limit"`
			}
			if err := Decode(c.Input, &in); err != nil {
				return nil, err
			}
			limit := 20
			if in.Limit != nil {
				limit = min(max(*in.Limit, 1), 50)
			}
			q := db.In(c.TenantID)
			t, err := thread.Get(ctx, q, in.ThreadID)
			if err != nil {
				return nil, err
			}
			messages, err := thread.Messages(ctx, q, []thread.Ref{{ID: t.ID, UUID: t.UUID}}, thread.NewestFirst, nil, limit)
			if err != nil {
				return nil, err
			}
			type line struct {
				Role thread.Role `json:"role"`
				Body string      `json:"body"`
			}
			lines := []line{}
			for _, m := range messages[t.UUID] {
				lines = append(lines, line{m.Role, m.Body})
			}
			slices.Reverse(lines)
			return lines, nil
		},
	}
}

// Decode reads a tool's input; what does not fit goes back to the model as an error.
func Decode(input json.RawMessage, to any) error {
	d := json.NewDecoder(bytes.NewReader(input))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return fault.Invalid("input: %v", err)
	}
	return nil
}
