package realtime

import (
	"encoding/json"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

// Types of the messages, both ways.
const (
	typeInit     = "connection_init"  // client: first
	typeAck      = "connection_ack"   // payload {connectionTimeoutMs}
	typeRefused  = "connection_error" // payload {errors}; the connection closes after it
	typeAlive    = "ka"
	typeStart    = "start" // client: id, payload {data, extensions}
	typeStarted  = "start_ack"
	typeData     = "data"  // id, payload {data, errors}
	typeError    = "error" // id if there is one, payload {errors}
	typeStop     = "stop"  // client: id
	typeComplete = "complete"
)

// AppSync's own error types, beside those of the API.
const (
	problemUnauthorized = "UnauthorizedException"
	problemBadRequest   = "BadRequestException"
	problemUnsupported  = "UnsupportedOperation"
	problemDuplicate    = "DuplicatedOperationError"
	problemUnknown      = "UnknownOperationError"
	problemTooMany      = "MaxSubscriptionsReachedError"
)

// incoming is a client's message.
type incoming struct {
	ID      string          `json:"id"`
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload"`
}

// start is the payload of a start message.
type start struct {
	Data       string `json:"data"` // a Request, as JSON text
	Extensions struct {
		Authorization authorization `json:"authorization"`
	} `json:"extensions"`
}

// authorization is the header object of a handshake and of a start message; its host and other members do not matter here.
type authorization struct {
	Token string `json:"Authorization"` // matched in any case; with or without Bearer
}

// outgoing is a server's message, but for data, which is put together from bytes.
type outgoing struct {
	ID      string `json:"id,omitempty"`
	Type    string `json:"type"`
	Payload any    `json:"payload,omitempty"`
}

func (o outgoing) encode() []byte {
	b, err := json.Marshal(o)
	if err != nil {
		panic(err) // only strings and numbers in it
	}
	return b
}

// problems is the message that reports them.
func problems(kind, id string, list ...Problem) []byte {
	return outgoing{ID: id, Type: kind, Payload: map[string][]Problem{"errors": list}}.encode()
}

// refusal is how a client reads the error of a Verifier.
func refusal(err error) Problem {
	f := fault.From(err)
	if f.Type == fault.InternalError {
		return Problem{ErrorType: string(f.Type), Message: f.Message, ErrorCode: f.Status()}
	}
	return Problem{ErrorType: problemUnauthorized, Message: f.Message, ErrorCode: fault.Unauthorized.Status()}
}
