package deadletter

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// Record is what Lambda's on-failure destination puts into the queue: version 1.0, as "Capturing records of Lambda asynchronous invocations" in AWS's
// documentation has it.
type Record struct {
	Version         string          `json:"version"`
	Timestamp       string          `json:"timestamp"` // RFC 3339 with milliseconds, UTC
	RequestContext  RequestContext  `json:"requestContext"`
	RequestPayload  json.RawMessage `json:"requestPayload"`
	ResponseContext ResponseContext `json:"responseContext"`
	ResponsePayload json.RawMessage `json:"responsePayload"` // {"errorType", "errorMessage", …}
}

// RequestContext is which call it was.
type RequestContext struct {
	RequestID              string `json:"requestId"`
	FunctionARN            string `json:"functionArn"` // with its qualifier, :$LATEST
	Condition              string `json:"condition"`   // RetriesExhausted, EventAgeExceeded
	ApproximateInvokeCount int    `json:"approximateInvokeCount"`
}

// ResponseContext is how the last try ended.
type ResponseContext struct {
	StatusCode      int    `json:"statusCode"`
	ExecutedVersion string `json:"executedVersion"`
	FunctionError   string `json:"functionError"`
}

// Exhausted is the record of a call that failed each time it was tried. payload and response are JSON.
func Exhausted(requestID, functionARN string, payload, response json.RawMessage, attempts int, at time.Time) Record {
	return Record{
		Version: "1.0", Timestamp: at.UTC().Format("2006-01-02T15:04:05.000Z"),
		RequestContext:  RequestContext{requestID, functionARN + ":$LATEST", "RetriesExhausted", attempts},
		RequestPayload:  payload,
		ResponseContext: ResponseContext{200, "$LATEST", "Unhandled"}, // 200: the function was reached
		ResponsePayload: response,
	}
}

// Message is a letter as its queue has it.
type Message struct {
	ID         string
	Body       string
	Attributes map[string]string // by which the scheduler says what its letter is
	Sent       time.Time         // when it was put into the queue
}

// Decode reads a record of Lambda's or a letter of the scheduler's. prefix is what comes before a manifest name in a function's name. Each member is
// read for itself, so that an odd one leaves the others known.
func Decode(m Message, prefix string) Letter {
	l := Letter{ID: m.ID, Body: m.Body, At: m.Sent}
	if _, byScheduler := m.Attributes["SCHEDULE_ARN"]; byScheduler {
		l.scheduled(m)
	} else {
		l.recorded(json.RawMessage(m.Body))
	}
	l.Function = manifestName(l.Target, prefix)
	return l
}

// scheduled reads a letter of the scheduler: all it says is in attributes, the body is the target's input.
func (l *Letter) scheduled(m Message) {
	l.Source, l.Target = Scheduler, m.Attributes["TARGET_ARN"]
	l.Error = Error{m.Attributes["ERROR_CODE"], m.Attributes["ERROR_MESSAGE"]}
	if retries, err := strconv.Atoi(m.Attributes["RETRY_ATTEMPTS"]); err == nil && retries >= 0 {
		l.Attempts = retries + 1
	}
	if m.Attributes["IS_PAYLOAD_TRUNCATED"] != "true" && json.Valid([]byte(m.Body)) {
		l.Payload = json.RawMessage(m.Body)
	}
}

// recorded reads a record of Lambda's. It has no payload when that was too large for the queue.
func (l *Letter) recorded(body json.RawMessage) {
	record := members(body)
	request, response, failure := members(record["requestContext"]), members(record["responseContext"]), members(record["responsePayload"])
	if request == nil {
		return
	}
	l.Source, l.Target, l.Payload = Function, text(request["functionArn"]), record["requestPayload"]
	var attempts int
	if json.Unmarshal(request["approximateInvokeCount"], &attempts) == nil && attempts > 0 {
		l.Attempts = attempts
	}
	if at, err := time.Parse(time.RFC3339, text(record["timestamp"])); err == nil {
		l.At = at.UTC()
	}
	l.Error.Type = cmp.Or(text(failure["errorType"]), text(response["functionError"]), text(request["condition"]))
	l.Error.Message = text(failure["errorMessage"])
	if failure == nil {
		l.Error.Message = text(record["responsePayload"])
	}
}

// manifestName is a function's name in the manifest; empty: the ARN is of something else. An ARN of a function is
// arn:<partition>:lambda:<region>:<account>:function:<name>, with :<qualifier> or without.
func manifestName(arn, prefix string) string {
	parts := strings.Split(arn, ":")
	if len(parts) < 7 || len(parts) > 8 || parts[0] != "arn" || parts[2] != "lambda" || parts[5] != "function" {
		return ""
	}
	name, ours := strings.CutPrefix(parts[6], prefix)
	if !ours {
		return ""
	}
	return name
}

// members are an object's; nil: it is none.
func members(raw json.RawMessage) (found map[string]json.RawMessage) {
	if json.Unmarshal(raw, &found) != nil {
		return nil
	}
	return found
}

// text is a string's; empty: it is none.
func text(raw json.RawMessage) (found string) {
	if json.Unmarshal(raw, &found) != nil {
		return ""
	}
	return found
}
