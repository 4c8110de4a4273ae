package publish_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/schema"
)

// loadSDL is the deployed schema with what AppSync declares by itself.
func loadSDL(t *testing.T) *ast.Schema {
	t.Helper()
	sdl, err := gqlparser.LoadSchema(
		&ast.Source{Name: "prelude.graphql", Input: schema.Prelude},
		&ast.Source{Name: "schema.graphql", Input: schema.SDL},
	)
	require.NoError(t, err)
	return sdl
}

func ptr[T any](v T) *T { return &v }

// everyEvent is one event of each kind with every member set.
func everyEvent() []publish.Event {
	at := ident.Time{Time: time.Date(2026, 1, 2, 3, 4, 5, 678000, time.UTC)}
	return []publish.Event{
		publish.NewMessage{TenantID: "t1", ThreadID: "CHAT-1", Message: publish.Message{
			ID: "m1", ThreadID: "CHAT-1", Role: "assistant", Body: "Hé <b> \u2028 \"you\"",
			ToolCalls:   []publish.ToolCall{{ID: "c1", Name: "search", Input: `{"q":"x"}`}},
			ToolResults: []publish.ToolResult{{ToolCallID: "c1", Name: "search", Status: "ok", Output: ptr(`[1]`), Error: ptr("none"), DurationMs: 7}},
			TokenCount:  ptr(3), Model: ptr("claude"), TurnID: ptr("u1"), CreatedAt: at,
		}},
		publish.AgentStatus{TenantID: "t1", ThreadID: "CHAT-1", AgentID: "a1", Status: publish.CallingTool, Activity: ptr("searching")},
		publish.ThreadUpdate{TenantID: "t1", ThreadID: "CHAT-1", Thread: publish.Thread{
			ID: "CHAT-1", Status: "open", Title: ptr("hello"), Metadata: ptr(`{"a":1}`), UpdatedAt: at}},
		publish.StreamChunk{TenantID: "t1", ThreadID: "CHAT-1", MessageID: "m1", Chunk: "Hé", Done: true},
		publish.AgentActivity{TenantID: "t1", AgentID: "a1", ThreadID: "CHAT-1", Status: publish.Failed, Activity: ptr("failed"), Timestamp: at},
	}
}

func TestEventsAreTheirSDLTypes(t *testing.T) {
	sdl := loadSDL(t)
	seen := map[string]bool{}
	for _, e := range everyEvent() {
		raw, err := e.MarshalJSON()
		require.NoError(t, err)
		var object map[string]any
		require.NoError(t, json.Unmarshal(raw, &object), "%s", raw)
		name, _ := object["__typename"].(string)
		seen[name] = true
		require.NotNil(t, sdl.Types[name], "%s is no type of the SDL", name)
		requireShape(t, sdl, sdl.Types[name], object)

		again, err := json.Marshal(e) // through the interface the same bytes, but for HTML escapes
		require.NoError(t, err)
		require.JSONEq(t, string(raw), string(again))
		stored, err := publish.Decode(raw)
		require.NoError(t, err)
		require.Equal(t, e, stored)
		require.NoError(t, e.Address().Check())
		require.Equal(t, "t1", e.Address().TenantID)
	}
	for _, member := range sdl.Types["ThreadEvent"].Types {
		require.True(t, seen[member], "the SDL has %s, this package has not", member)
	}
	require.True(t, seen["AgentActivityEvent"])
}

// requireShape holds an object's members against the fields of an SDL type, in both directions, and enum values against their enum.
func requireShape(t *testing.T, sdl *ast.Schema, definition *ast.Definition, object map[string]any) {
	t.Helper()
	for _, field := range definition.Fields {
		value, ok := object[field.Name]
		require.True(t, ok, "%s.%s is missing", definition.Name, field.Name)
		kind := sdl.Types[field.Type.Name()]
		switch value := value.(type) {
		case map[string]any:
			requireShape(t, sdl, kind, value)
		case []any:
			for _, item := range value {
				requireShape(t, sdl, kind, item.(map[string]any))
			}
		case string:
			if kind.Kind == ast.Enum {
				require.NotNil(t, kind.EnumValues.ForName(value), "%s is no %s", value, kind.Name)
			}
		}
	}
	for member := range object {
		if !strings.HasPrefix(member, "__") {
			require.NotNil(t, definition.Fields.ForName(member), "%s.%s is not in the SDL", definition.Name, member)
		}
	}
}

func TestActivitiesAreTheSDLs(t *testing.T) {
	var values []string
	for _, v := range loadSDL(t).Types["AgentActivityStatus"].EnumValues {
		values = append(values, v.Name)
	}
	require.ElementsMatch(t, values, []string{string(publish.Idle), string(publish.Thinking), string(publish.CallingTool), string(publish.Streaming), string(publish.Failed)})
}

func TestDecodeRefusesWhatIsNoEvent(t *testing.T) {
	for _, raw := range []string{``, `[]`, `{}`, `{"__typename":"Thread"}`, `{"__typename":"StreamChunkEvent","done":1}`} {
		_, err := publish.Decode([]byte(raw))
		require.Error(t, err, raw)
	}
}

func TestNullableMembersAreNullNotAbsent(t *testing.T) {
	raw, err := publish.NewMessage{TenantID: "t1", ThreadID: "CHAT-1"}.MarshalJSON()
	require.NoError(t, err)
	require.Contains(t, string(raw), `"toolCalls":null,"toolResults":null,"tokenCount":null,"model":null,"turnId":null`)
	require.True(t, strings.HasPrefix(string(raw), `{"__typename":"NewMessageEvent","tenantId":"t1"`))
}

func TestIncompleteAddressesAreRefused(t *testing.T) {
	full := publish.Address{Topic: publish.ThreadEvents, TenantID: "t", Subject: "s"}
	require.NoError(t, full.Check())
	for i := range reflect.TypeFor[publish.Address]().NumField() {
		part := full
		reflect.ValueOf(&part).Elem().Field(i).SetString("")
		require.Error(t, part.Check())
	}
}
