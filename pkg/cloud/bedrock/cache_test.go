package bedrock

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/model"
)

// Where a prompt is long enough to be worth it, its beginning is marked for models that keep it.
func TestCachePoints(t *testing.T) {
	s := speak(t, Config{}, func(w http.ResponseWriter, _ *http.Request) {
		events(w, "messageStop", `{"stopReason":"end_turn"}`, "metadata", usageEvent)
	})
	long := strings.Repeat("words ", cacheFrom/5)
	sent := func(r model.Request) (points []string) {
		_, err := s.client.Converse(t.Context(), r, nil)
		require.NoError(t, err)
		var body struct {
			System   []map[string]json.RawMessage
			Messages []struct{ Content []map[string]json.RawMessage }
			Tools    struct{ Tools []map[string]json.RawMessage } `json:"toolConfig"`
		}
		require.NoError(t, json.Unmarshal(s.body, &body))
		mark := func(where string, blocks []map[string]json.RawMessage) {
			for i, b := range blocks {
				if p := b["cachePoint"]; p != nil {
					require.JSONEq(t, `{"type":"default"}`, string(p))
					require.Equal(t, len(blocks)-1, i, "behind all of it")
					points = append(points, where)
				}
			}
		}
		mark("tools", body.Tools.Tools)
		mark("system", body.System)
		for i, m := range body.Messages {
			if i == len(body.Messages)-1 {
				mark("last message", m.Content)
			} else {
				mark("a message before", m.Content)
			}
		}
		return points
	}
	say := func(role model.Role, text string) model.Message {
		return model.Message{Role: role, Blocks: []model.Block{{Text: text}}}
	}
	talk := []model.Message{say(model.User, "one"), say(model.Assistant, "two"), say(model.User, "three")}
	tools := []model.Tool{{Name: "look", Description: long}}
	for _, id := range []string{"anthropic.claude-sonnet-4-5-20250929-v1:0", "global.anthropic.claude-opus-4-5-20251101-v1:0", "us.anthropic.claude-3-7-sonnet-20250219-v1:0",
		"anthropic.claude-3-5-haiku-20241022-v1:0", "eu.amazon.nova-pro-v1:0", "arn:aws:bedrock:eu-central-1:123456789012:inference-profile/eu.anthropic.claude-haiku-4-5-20251001-v1:0"} {
		require.Equal(t, []string{"tools", "system", "last message"}, sent(model.Request{ModelID: id, System: long, Tools: tools, Messages: talk}), id)
		require.Equal(t, []string{"last message"}, sent(model.Request{ModelID: id, System: "short", Messages: []model.Message{say(model.User, long), say(model.Assistant, "a"), say(model.User, "b")}}), id)
		require.Empty(t, sent(model.Request{ModelID: id, System: "short", Messages: talk}), id)
	}
	for _, id := range []string{"anthropic.claude-3-haiku-20240307-v1:0", "anthropic.claude-3-5-sonnet-20240620-v1:0", "meta.llama3-70b-instruct-v1:0", "offline.echo-1"} {
		require.Empty(t, sent(model.Request{ModelID: id, System: long, Tools: tools, Messages: talk}), id)
	}
}
