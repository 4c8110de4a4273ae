package tracker_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/tracker"
)

var update = flag.Bool("update", false, "write what the fixtures say anew")

// said is an event as the golden files have it.
type said struct {
	Line  string
	Event tracker.Event
}

// fixtures are the deliveries of a tracker, by name.
func fixtures(t testing.TB, provider string) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/" + provider + "/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	all := map[string][]byte{}
	for _, file := range files {
		body, err := os.ReadFile(file)
		require.NoError(t, err)
		all[strings.TrimSuffix(filepath.Base(file), ".json")] = body
	}
	return all
}

func of(t testing.TB, provider string) tracker.Provider {
	t.Helper()
	p, is := tracker.Of(provider)
	require.True(t, is)
	return p
}

func TestNormalize(t *testing.T) {
	for _, provider := range tracker.Names() {
		t.Run(provider, func(t *testing.T) {
			got := map[string]any{}
			for name, body := range fixtures(t, provider) {
				events, err := of(t, provider).Normalize(body)
				require.NoError(t, err, name)
				all := []said{}
				for _, e := range events {
					all = append(all, said{e.Line(tracker.Envelope{}), e})
				}
				got[name] = map[string]any{"Word": of(t, provider).Word(body), "Events": all}
			}
			text, err := json.MarshalIndent(got, "", "  ")
			require.NoError(t, err)
			golden := "testdata/" + provider + ".golden.json"
			if *update {
				require.NoError(t, os.WriteFile(golden, append(text, '\n'), 0o600))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.JSONEq(t, string(want), string(text))
		})
	}
}

// kinds are the events of the fixtures that matter most, written apart from the golden files.
func TestKinds(t *testing.T) {
	for provider, want := range map[string]map[string][]tracker.Kind{
		"linear": {
			"issue-create-2023": {tracker.Assignment}, "subissue-create-2023": {tracker.Other}, "issue-assigned": {tracker.Assignment}, "issue-reassigned": {tracker.Assignment},
			"issue-unassigned": {tracker.Assignment}, "issue-state-changed": {tracker.Status}, "issue-update-state-2025-redacted": nil, "issue-due-set": {tracker.DueDate},
			"issue-due-changed": {tracker.DueDate}, "issue-due-removed": {tracker.DueDate}, "issue-label-changed": {tracker.Other}, "comment-create": {tracker.Comment},
			"comment-create-2023": {tracker.Comment}, "issue-remove-2023": {tracker.Other}, "issuelabel-create-2023": nil, "oauthapp-revoked": nil,
		},
		"jira": {
			"issue-created-2025": {tracker.Other}, "issue-assigned": {tracker.Assignment}, "issue-reassigned": {tracker.Assignment}, "issue-unassigned": {tracker.Assignment},
			"issue-status-changed": {tracker.Status}, "issue-status-done-with-resolution": {tracker.Status}, "issue-updated-status-2017": {tracker.Status},
			"issue-due-set": {tracker.DueDate}, "issue-due-changed": {tracker.DueDate}, "issue-due-removed": {tracker.DueDate}, "issue-title-changed": {tracker.Other},
			"issue-deleted": {tracker.Other}, "comment-created-2019": {tracker.Comment}, "comment-created-no-issue-2019": {tracker.Comment},
		},
		"asana": {
			"heartbeat": nil, "task-assigned": {tracker.Assignment}, "task-assigned-no-new-value": {tracker.Assignment}, "task-unassigned": {tracker.Assignment},
			"task-completed-2021": {tracker.Status}, "task-section-moved": {tracker.Status}, "task-due-changed": {tracker.DueDate}, "comment-added": {tracker.Comment},
			"system-story-assigned": nil, "task-added-2026": {tracker.Other}, "task-deleted": {tracker.Other}, "batch-mixed": {tracker.Assignment, tracker.DueDate},
		},
	} {
		all := fixtures(t, provider)
		for name, kinds := range want {
			require.Contains(t, all, name)
			events, err := of(t, provider).Normalize(all[name])
			require.NoError(t, err)
			var got []tracker.Kind
			for _, e := range events {
				got = append(got, e.Kind)
			}
			require.Equal(t, kinds, got, "%s %s", provider, name)
		}
	}
}

// One delivery may say that several things were changed at once.
func TestSeveralChangesAtOnce(t *testing.T) {
	for provider, change := range map[string]func(body map[string]any){
		"linear": func(body map[string]any) {
			old := body["updatedFrom"].(map[string]any)
			old["stateId"], old["dueDate"] = "x", nil
		},
		"jira": func(body map[string]any) {
			log := body["changelog"].(map[string]any)
			log["items"] = append(log["items"].([]any), map[string]any{"field": "status", "fieldId": "status"}, map[string]any{"field": "duedate", "fieldId": "duedate"})
		},
	} {
		var body map[string]any
		require.NoError(t, json.Unmarshal(fixtures(t, provider)["issue-assigned"], &body))
		change(body)
		raw, err := json.Marshal(body)
		require.NoError(t, err)
		events, err := of(t, provider).Normalize(raw)
		require.NoError(t, err)
		ids := map[string]bool{}
		for i, kind := range []tracker.Kind{tracker.Assignment, tracker.Status, tracker.DueDate} {
			require.Equal(t, kind, events[i].Kind, provider)
			ids[events[i].ID] = true
		}
		require.Len(t, ids, 3, provider)
	}
}

// Asana repeats events in other deliveries: each has the same id there.
func TestAnAsanaEventIsTheSameInAnotherDelivery(t *testing.T) {
	asana, all := of(t, "asana"), fixtures(t, "asana")
	one, err := asana.Normalize(all["task-assigned"])
	require.NoError(t, err)
	var a, b struct{ Events []json.RawMessage }
	require.NoError(t, json.Unmarshal(all["tag-added"], &a))
	require.NoError(t, json.Unmarshal(all["task-assigned"], &b))
	both, err := json.Marshal(map[string]any{"events": append(a.Events, b.Events...)})
	require.NoError(t, err)
	again, err := asana.Normalize(both)
	require.NoError(t, err)
	require.Len(t, again, 2)
	require.Equal(t, one[0].ID, again[1].ID)
	require.NotEqual(t, one[0].ID, again[0].ID)
}

// Who completes a task changes two fields, and who gives it a date too: that is told once, in one delivery or in two. What is done later is told.
func TestAnAsanaTaskIsCompletedAndReopened(t *testing.T) {
	change := func(field, at string) string {
		return `{"user":{"gid":"7"},"created_at":"2026-04-21T10:0` + at + `.000Z","action":"changed","resource":{"gid":"1","resource_type":"task"},"change":{"field":"` + field + `","action":"changed"}}`
	}
	told := func(events ...string) (all []string) {
		t.Helper()
		found, err := of(t, "asana").Normalize([]byte(`{"events":[` + strings.Join(events, ",") + `]}`))
		require.NoError(t, err)
		for _, e := range found {
			all = append(all, string(e.Kind)+" "+e.ID)
		}
		return all
	}
	for first, second := range map[string]string{"completed": "completed_at", "due_on": "due_at"} {
		events := told(change(first, "0:00"), change(second, "0:00"), change(first, "1:00"), change(second, "1:00"), change(first, "2:00"))
		require.Len(t, events, 3, first)
		require.NotEqual(t, events[0], events[1])
		require.NotEqual(t, events[1], events[2])
		require.Equal(t, events[:1], told(change(second, "0:00")), "in another delivery")
		require.Equal(t, events[:1], told(change(second, "0:00"), change(first, "0:00")))
	}
	require.Len(t, told(change("completed", "0:00"), change("due_on", "0:00")), 2)
}

// What a field is changed to is of any kind: a delivery that cannot be taken would come for a day, and then no other.
func TestAsanaChangesOfAnyKind(t *testing.T) {
	for _, value := range []string{`7`, `"x"`, `true`, `[]`, `[{}]`, `{"gid":7}`, `null`} {
		events, err := of(t, "asana").Normalize([]byte(`{"events":[{"user":` + value + `,"created_at":"2026-04-21T10:00:00.000Z","action":"changed","resource":{"gid":"1","resource_type":"task"},
			"parent":` + value + `,"change":{"field":"custom_fields","action":"changed","new_value":` + value + `,"added_value":` + value + `}}]}`))
		require.NoError(t, err, value)
		require.Len(t, events, 1)
		require.Equal(t, "Somebody changed the custom fields of the task", events[0].Line(tracker.Envelope{}))
	}
}

func TestNormalizeRefuses(t *testing.T) {
	for _, provider := range tracker.Names() {
		for _, body := range []string{"", "x", `{"type":"Issue"`, `[]`, "{\"a\":\"\xff\"}", `"a"`, strings.Repeat(`{"data":`, 200) + `1` + strings.Repeat(`}`, 200)} {
			events, err := of(t, provider).Normalize([]byte(body))
			require.Equal(t, fault.ValidationError, fault.From(err).Type, "%s: %s", provider, body)
			require.Empty(t, events)
		}
	}
}

// What people write is on one line and short, and what is no id or link is none.
func TestNormalizeCleans(t *testing.T) {
	long := strings.Repeat("é", 10_000)
	for title, want := range map[string]string{
		"one\r\ntwo\x00three\u2028four\ufeff": "one two three four", long: strings.Repeat("é", 148) + "…", "\t": "",
	} {
		raw, err := json.Marshal(map[string]any{"type": "Issue", "action": "create", "webhookTimestamp": 1 << 62, "url": "javascript:alert(1)",
			"data": map[string]any{"id": "a", "identifier": "ENG-1 \n", "title": title, "dueDate": "soon", "updatedAt": "99999-01-01T00:00:00Z", "url": "http://x/"}})
		require.NoError(t, err)
		events, err := of(t, "linear").Normalize(raw)
		require.NoError(t, err)
		task := events[0].Envelope
		if want == "" {
			require.False(t, task.Title.Set)
		} else {
			require.Equal(t, want, *task.Title.Value)
		}
		require.False(t, task.Key.Set || task.URL.Set)
		require.True(t, task.Due.Set && task.Due.Value == nil)
		require.True(t, events[0].At.IsZero() && task.UpdatedAt.IsZero(), "a time that cannot be written is none")
	}
	for _, id := range []string{"..", "1/../2", "a", "", "１"} {
		raw, err := json.Marshal(map[string]any{"webhookEvent": "jira:issue_created", "issue": map[string]any{"id": id}})
		require.NoError(t, err)
		events, err := of(t, "jira").Normalize(raw)
		require.NoError(t, err)
		require.Empty(t, events, id)
	}
}

func FuzzNormalizeLinear(f *testing.F) { fuzz(f, "linear") }
func FuzzNormalizeJira(f *testing.F)   { fuzz(f, "jira") }
func FuzzNormalizeAsana(f *testing.F)  { fuzz(f, "asana") }

// Whatever is sent, what comes of it can be stored, shown and asked for.
func fuzz(f *testing.F, provider string) {
	for _, body := range fixtures(f, provider) {
		f.Add(body)
	}
	p := of(f, provider)
	f.Fuzz(func(t *testing.T, body []byte) {
		events, err := p.Normalize(body)
		if err != nil {
			require.Equal(t, fault.ValidationError, fault.From(err).Type)
			require.Empty(t, events)
		}
		require.LessOrEqual(t, len(p.Word(body)), 100)
		require.LessOrEqual(t, len(events), 1000)
		ids := map[string]bool{}
		for _, e := range events {
			require.False(t, ids[e.ID], "an id twice")
			ids[e.ID] = true
			require.NotEmpty(t, e.ID)
			require.NotEmpty(t, e.TaskID)
			require.Equal(t, e.TaskID, e.Envelope.TaskID)
			require.Equal(t, tracker.SourceSynthetic, e.Envelope.Source)
			require.Less(t, e.At, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))
			stored, err := json.Marshal(e)
			require.NoError(t, err)
			require.Less(t, len(stored), 32<<10)
			for _, text := range []string{e.Line(tracker.Envelope{}), e.Envelope.Name(), e.TaskID, e.Account, e.Detail} {
				require.True(t, utf8.ValidString(text))
				require.NotContains(t, text, "\x00")
				require.NotContains(t, text, "\n")
				require.Less(t, len(text), 1500)
			}
			require.NotContains(t, string(stored), `\u0000`)
		}
	})
}
