package export

import (
	"bytes"
	"strings"

	"github.com/agentplatform/agentplatform/pkg/audit/canonical"
	"github.com/agentplatform/agentplatform/pkg/audit/trail"
)

// names are the columns of a CSV file and the members of an NDJSON line, in their order.
var names = [...]string{"event_id", "tenant_id", "occurred_at", "recorded_at", "actor", "actor_type", "source", "event_type", "event_hash", "prev_hash", "payload_json"}

// cells are an event's values in the order of names; the last is JSON already.
func cells(e *trail.Event) [len(names)]string {
	return [...]string{e.EventID, e.TenantID, e.OccurredAt.String(), e.RecordedAt.String(), e.Actor, string(e.ActorType), string(e.Source), string(e.Type),
		e.Hash, e.Prev, string(e.Payload)}
}

// ContentType is a file's media type.
func (f Format) ContentType() string {
	if f == NDJSON {
		return "application/x-ndjson"
	}
	return "text/csv; charset=utf-8; header=present"
}

// appendHeader appends what a file begins with.
func (f Format) appendHeader(dst []byte) []byte {
	if f == NDJSON {
		return dst
	}
	return appendCSV(dst, names)
}

// appendEvent appends an event's line.
func (f Format) appendEvent(dst []byte, e *trail.Event) ([]byte, error) {
	if f == CSV {
		return appendCSV(dst, cells(e)), nil
	}
	values := cells(e)
	last := len(values) - 1
	for i, v := range values[:last] {
		dst = append(append(append(dst, "{,"[min(i, 1)], '"'), names[i]...), `":`...)
		var err error
		if dst, err = canonical.AppendString(dst, v); err != nil {
			return dst, err
		}
	}
	dst = append(append(append(dst, `,"`...), names[last]...), `":`...)
	return append(append(dst, values[last]...), "}\n"...), nil
}

func appendCSV(dst []byte, cells [len(names)]string) []byte {
	for i, c := range cells {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendCell(dst, c)
	}
	return append(dst, "\r\n"...)
}

// appendCell appends one cell as RFC 4180 writes it, after making it harmless to spreadsheets.
func appendCell(dst []byte, cell string) []byte {
	formula := cell != "" && strings.IndexByte("=+-@\t\r", cell[0]) >= 0
	quoted := strings.ContainsAny(cell, ",\"\r\n")
	if quoted {
		dst = append(dst, '"')
	}
	if formula {
		dst = append(dst, '\'')
	}
	if !quoted {
		return append(dst, cell...)
	}
	dst = append(dst, bytes.ReplaceAll([]byte(cell), []byte{'"'}, []byte(`""`))...)
	return append(dst, '"')
}
