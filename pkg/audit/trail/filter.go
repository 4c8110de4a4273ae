package trail

import (
	"fmt"
	"strings"
	"time"

	"github.com/agentplatform/agentplatform/pkg/audit/canonical"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/text"
)

// DefaultWindow is how far back a list or an export reaches that names no beginning.
const DefaultWindow = 7 * 24 * time.Hour

// Filter says which events; every field that is given must fit.
type Filter struct {
	EventType *string     `json:"eventType,omitempty"`
	TenantID  *string     `json:"tenantId,omitempty"`
	Actor     *string     `json:"actor,omitempty"`
	From      *ident.Time `json:"from,omitempty"` // occurred at this time or later
	To        *ident.Time `json:"to,omitempty"`   // occurred before this time
}

// Check is the filter in its one spelling; what nothing could fit by its form is a ValidationError.
func (f Filter) Check() (Filter, error) {
	for _, field := range [...]struct {
		name  string
		value *string
	}{{"eventType", f.EventType}, {"actor", f.Actor}} {
		if err := text.CheckOptional(field.name, field.value, maxFilterText); err != nil {
			return f, err
		}
	}
	if f.TenantID != nil {
		if !ident.Valid(*f.TenantID) {
			return f, fault.Invalid("tenantId must be a UUID")
		}
		id := strings.ToLower(*f.TenantID)
		f.TenantID = &id
	}
	for name, at := range map[string]**ident.Time{"from": &f.From, "to": &f.To} {
		if *at != nil {
			if (*at).Year() < 1000 { // a window's beginning must have four digits too
				return f, fault.Invalid("%s must lie in the years 1000 to 9999", name)
			}
			cut := ident.Time{Time: (*at).Truncate(time.Microsecond)} // as the database keeps times
			*at = &cut
		}
	}
	if f.From != nil && f.To != nil && !f.From.Before(f.To.Time) {
		return f, fault.Invalid("from must be before to")
	}
	return f, nil
}

// maxFilterText is beyond what any event holds.
const maxFilterText = 4 << 10

// Since is f with a beginning: without one, DefaultWindow before its end, or before now when it has no end either.
func (f Filter) Since(now ident.Time) Filter {
	if f.From == nil {
		end := now
		if f.To != nil {
			end = *f.To
		}
		f.From = &ident.Time{Time: end.Add(-DefaultWindow)}
	}
	return f
}

// Map is the filter as an object: what is given, by the names of the API.
func (f Filter) Map() map[string]any {
	m := map[string]any{}
	for name, value := range map[string]*string{"eventType": f.EventType, "tenantId": f.TenantID, "actor": f.Actor} {
		if value != nil {
			m[name] = *value
		}
	}
	for name, value := range map[string]*ident.Time{"from": f.From, "to": f.To} {
		if value != nil {
			m[name] = value.String()
		}
	}
	return m
}

// Canonical is the canonical text of Map.
func (f Filter) Canonical() (canonical.Raw, error) {
	out, err := canonical.Append(nil, f.Map())
	if err != nil {
		return nil, fmt.Errorf("filter: %w", err)
	}
	return out, nil
}

// where is the condition on audit_events. It names only what is given, so that the planner sees what there is to use.
func (f Filter) where() (condition string, args []any) {
	condition = `true`
	if f.EventType != nil {
		condition, args = and(condition, args, `event_type = %s`, *f.EventType)
	}
	if f.TenantID != nil {
		condition, args = and(condition, args, `tenant_id = %s`, *f.TenantID)
	}
	if f.Actor != nil {
		condition, args = and(condition, args, `actor = %s`, *f.Actor)
	}
	if f.From != nil {
		condition, args = and(condition, args, `occurred_at >= %s`, *f.From)
	}
	if f.To != nil {
		condition, args = and(condition, args, `occurred_at < %s`, *f.To)
	}
	return condition, args
}

// and adds a condition with its arguments; %s in it are their places.
func and(condition string, args []any, more string, values ...any) (string, []any) {
	places := make([]any, len(values))
	for i, v := range values {
		args = append(args, v)
		places[i] = fmt.Sprintf("$%d", len(args))
	}
	return condition + ` and ` + fmt.Sprintf(more, places...), args
}
