package gateway

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/gateway/internal/tape"
)

// Location is a place in the request's query, both counted from 1, columns in UTF-16 units.
type Location struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

// Error is one entry of errors.
type Error struct {
	Message   string
	ErrorType fault.Type
	Locations []Location
	Path      []any // string (response name) or int (list index)

	status int // of the error where HTTP has a finer one than its type's; 0: the type's
}

func newError(typ fault.Type, message string, at ...Location) Error {
	return Error{Message: message, ErrorType: typ, Locations: at}
}

// Status is the HTTP status of the error by the table of package fault.
func (e Error) Status() int {
	if e.status != 0 {
		return e.status
	}
	return e.ErrorType.Status()
}

// Response is the answer to a request.
type Response struct {
	Data   json.RawMessage // nil: the request failed before execution
	Errors []Error

	answered bool // a root field came back non-null
}

func failed(errors ...Error) *Response { return &Response{Errors: errors} }

// Status is the HTTP status to answer with: 200 when a root field came back non-null or there is no error, else the first error's.
func (r *Response) Status() int {
	if r.answered || len(r.Errors) == 0 {
		return http.StatusOK
	}
	return r.Errors[0].Status()
}

// JSON is the response's body. (json.Marshal gives the same value, but scans it again and escapes <, > and &.)
func (r *Response) JSON() []byte { return r.append(nil) }

// MarshalJSON writes data (when execution began), then errors (when there are any).
func (r *Response) MarshalJSON() ([]byte, error) { return r.append(nil), nil }

// MarshalJSON writes all four members, the last two as empty lists where they do not apply.
func (e Error) MarshalJSON() ([]byte, error) { return e.append(nil), nil }

func (r *Response) append(dst []byte) []byte {
	dst = append(dst, '{')
	if r.Data != nil {
		dst = append(append(dst, `"data":`...), r.Data...)
	}
	for i, e := range r.Errors {
		switch {
		case i > 0:
			dst = append(dst, ',')
		case r.Data != nil:
			dst = append(dst, `,"errors":[`...)
		default:
			dst = append(dst, `"errors":[`...)
		}
		dst = e.append(dst)
	}
	if len(r.Errors) > 0 {
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

func (e Error) append(dst []byte) []byte {
	dst = tape.AppendText(append(dst, `{"message":`...), e.Message)
	dst = tape.AppendText(append(dst, `,"errorType":`...), string(e.ErrorType))
	dst = append(dst, `,"locations":[`...)
	for i, l := range e.Locations {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(append(dst, `{"line":`...), int64(l.Line), 10)
		dst = strconv.AppendInt(append(dst, `,"column":`...), int64(l.Column), 10)
		dst = append(dst, '}')
	}
	dst = append(dst, `],"path":[`...)
	for i, step := range e.Path {
		if i > 0 {
			dst = append(dst, ',')
		}
		switch step := step.(type) {
		case int:
			dst = strconv.AppendInt(dst, int64(step), 10)
		case string:
			dst = tape.AppendText(dst, step)
		}
	}
	return append(dst, "]}"...)
}
