package audit

import (
	"fmt"
	"strings"
	"time"

	"github.com/agentplatform/agentplatform/pkg/audit/canonical"
	"github.com/agentplatform/agentplatform/pkg/ident"
)

// ParseEnvelope reads the canonical text of an envelope, pending or recorded, and takes nothing that Append would not write: the text must be canonical,
// its members known, the required ones there, each of its type and form. Payload is a part of text; the other members are copied.
func ParseEnvelope(text []byte) (Envelope, error) {
	if err := canonical.Check(text); err != nil {
		return Envelope{}, fmt.Errorf("audit: envelope: %w", err)
	}
	if text[0] != '{' {
		return Envelope{}, fmt.Errorf("audit: envelope: not an object")
	}
	p := reader{copy: string(text)}
	at := 1
	for name, value := range canonical.Members(text) {
		at += len(name) + len(`"":`)
		p.member(name, value, p.copy[at:at+len(value)])
		at += len(value) + len(`,`)
	}
	e := &p.Envelope
	if p.err == nil && (e.Payload == nil || e.SchemaVersion != SchemaVersion || e.OccurredAt.IsZero()) {
		p.err = fmt.Errorf("occurred_at, payload and schema_version are required, and version %d is the only one", SchemaVersion)
	}
	if p.err == nil {
		p.err = e.check()
	}
	if p.err != nil {
		return Envelope{}, fmt.Errorf("audit: envelope: %w", p.err)
	}
	return *e, nil
}

// reader fills an envelope and keeps the first error. Texts without escapes are parts of copy, so that they cost one allocation together.
type reader struct {
	Envelope
	copy string
	err  error
}

func (p *reader) member(name, value []byte, text string) {
	switch string(name) {
	case "actor":
		p.Actor = p.text("actor", value, text)
	case "actor_type":
		p.ActorType = ActorType(p.text("actor_type", value, text))
	case "agent_id":
		p.AgentID = p.text("agent_id", value, text)
	case "event_id":
		p.EventID = p.text("event_id", value, text)
	case "event_type":
		p.Type = Type(p.text("event_type", value, text))
	case "occurred_at":
		p.OccurredAt = p.time("occurred_at", text)
	case "payload":
		if p.Payload = value[:len(value):len(value)]; value[0] != '{' {
			p.fail("payload must be an object")
		}
	case "recorded_at":
		p.RecordedAt = p.time("recorded_at", text)
	case "redacted_fields":
		p.RedactedFields = p.names(value)
	case "request_id":
		p.RequestID = p.text("request_id", value, text)
	case "resource_id":
		p.ResourceID = p.text("resource_id", value, text)
	case "resource_type":
		p.ResourceType = p.text("resource_type", value, text)
	case "schema_version":
		if text == "1" {
			p.SchemaVersion = 1
		}
	case "source":
		p.Source = Source(p.text("source", value, text))
	case "tenant_id":
		p.TenantID = p.text("tenant_id", value, text)
	case "thread_id":
		p.ThreadID = p.text("thread_id", value, text)
	default:
		p.fail("a member that is not known")
	}
}

func (p *reader) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

// text is the value of a member that is a string; an empty one would not have been written.
func (p *reader) text(name string, value []byte, text string) string {
	if len(text) <= 2 || text[0] != '"' {
		p.fail("%s must be a string with something in it", name)
		return ""
	}
	if strings.IndexByte(text, '\\') >= 0 {
		s, _ := canonical.Unquote(value)
		return s
	}
	return text[1 : len(text)-1]
}

// names reads the list of redacted fields: strings, ascending by their bytes, none twice.
func (p *reader) names(list []byte) (names []string) {
	i := 1
	for ; i < len(list) && list[0] == '[' && list[i] == '"'; i++ { // behind the bracket, behind each comma
		end := i + 1
		for ; list[end] != '"'; end++ {
			if list[end] == '\\' {
				end++
			}
		}
		s, _ := canonical.Unquote(list[i : end+1])
		if len(names) > 0 && names[len(names)-1] >= s {
			p.fail("redacted_fields must be in order")
		}
		names = append(names, s)
		i = end + 1
	}
	if i != len(list) || len(names) == 0 {
		p.fail("redacted_fields must be a list of names")
	}
	return names
}

// time reads `"2006-01-02T15:04:05.000000Z"`, which is ident.TimeLayout in quotes, and no other spelling.
func (p *reader) time(name, text string) ident.Time {
	t, ok := parseTime(text)
	if !ok || t.IsZero() {
		p.fail("%s must be a time in UTC with six fractional digits", name)
	}
	return t
}

const timeForm = `"0000-00-00T00:00:00.000000Z"`

// parseTime is time.Parse without the layout: an envelope has two times, and a verifier reads millions.
func parseTime(s string) (ident.Time, bool) {
	if len(s) != len(timeForm) {
		return ident.Time{}, false
	}
	for i := range len(timeForm) {
		if c := timeForm[i]; c == '0' {
			if s[i] < '0' || s[i] > '9' {
				return ident.Time{}, false
			}
		} else if s[i] != c {
			return ident.Time{}, false
		}
	}
	year, month, day := number(s[1:5]), number(s[6:8]), number(s[9:11])
	hour, minute, second := number(s[12:14]), number(s[15:17]), number(s[18:20])
	if year < 1 || month < 1 || month > 12 || day < 1 || hour > 23 || minute > 59 || second > 59 {
		return ident.Time{}, false
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second, number(s[21:27])*1000, time.UTC)
	if t.Day() != day { // 30 February
		return ident.Time{}, false
	}
	return ident.Time{Time: t}, true
}

func number(digits string) (n int) {
	for i := range len(digits) {
		n = n*10 + int(digits[i]-'0')
	}
	return n
}
