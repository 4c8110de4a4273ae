package channel

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/provider"
	"github.com/agentplatform/agentplatform/pkg/text"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

// generic is any system that signs: HMAC-SHA256 over "<seconds>.<body>". Answers to it are signed with the same secret over "reply.<seconds>.<body>", so that none
// of them, by whomever it is sent on, passes for something that was said there: no delivery's time begins so.
//
// What holds: a message is taken once, by the id that its body gives it, or else by its time and body, because neither the delivery's id nor any other header
// is signed. An answer is posted until it was taken, under one id: whoever takes it must take that id once.
type generic struct{}

// The headers of a delivery, in both directions.
const (
	signatureHeader = "X-Signature-256"       // sha256=<hexadecimal>
	timestampHeader = "X-Signature-Timestamp" // Unix seconds
	deliveryHeader  = "X-Delivery-Id"         // one delivery has one, however often it comes
)

func (generic) Verify(in Inbound, secret string) error {
	given, ok := strings.CutPrefix(in.Header(signatureHeader), "sha256=")
	at := in.Header(timestampHeader)
	mac := genericMAC(secret, "", at, in.Body)
	if !provider.SameHex(given, mac) || !ok || !fresh(at, in.Now) || secret == "" {
		return ErrUnverified
	}
	return nil
}

// replyDirection is before the time of what is signed by the platform.
const replyDirection = "reply."

func genericMAC(secret, direction, at string, body []byte) []byte {
	return provider.MAC(secret, []byte(direction+at+"."), body)
}

// genericMessage is the body of a delivery.
type genericMessage struct {
	Conversation string         `json:"conversation"` // the sender's id of it. Required
	Message      string         `json:"message"`      // what was said. Required
	ID           string         `json:"id"`           // the sender's id of the message in the conversation, which may come in several deliveries
	Title        *string        `json:"title"`        // of a new thread
	Sender       Sender         `json:"sender"`
	Metadata     map[string]any `json:"metadata"` // of a new thread

	ThreadID json.RawMessage `json:"thread_id"` // what only an answer has
}

// key is the message's, whichever delivery it came in.
func (m genericMessage) key(in Inbound) string {
	if m.ID != "" {
		return url.PathEscape(m.Conversation) + "/" + url.PathEscape(m.ID)
	}
	sum := sha256.Sum256(append([]byte(in.Header(timestampHeader)+"."), in.Body...))
	return hex.EncodeToString(sum[:])
}

// genericAddress is where replies go: the rest is the integration's.
type genericAddress struct {
	Conversation string `json:"conversation"`
}

const maxID = 200

func (generic) Read(in Inbound, _ Config) (Event, error) {
	e := Event{ID: in.Header(deliveryHeader), Kind: "message"}
	if err := text.Check(deliveryHeader, e.ID, 1, maxID); err != nil {
		return Event{Kind: e.Kind}, err
	}
	var m genericMessage
	if err := json.Unmarshal(in.Body, &m); err != nil {
		return e, fault.Invalid("the body is not a JSON object of a message")
	}
	if there(m.ThreadID) { // signed anew by a system that sends on what it gets: it would go round for ever
		return e, fault.Invalid("the body has a thread_id: it is an answer of the platform's")
	}
	said := Cut(m.Message)
	for name, value := range map[string]string{"conversation": m.Conversation, "message": said} {
		if strings.TrimSpace(value) == "" {
			return e, fault.Invalid("the body has no %s", name)
		}
	}
	for name, value := range map[string]string{"conversation": m.Conversation, "id": m.ID, "sender.id": m.Sender.ID, "sender.name": m.Sender.Name} {
		if err := text.Check(name, value, 0, maxID); err != nil {
			return e, err
		}
	}
	var metadata map[string]any
	var kept *string
	if m.Metadata != nil {
		metadata = map[string]any{"generic": m.Metadata}
		raw, _ := json.Marshal(metadata) // it was read from JSON
		kept = new(string(raw))
	}
	if err := thread.Check(m.Title, kept); err != nil {
		return e, err
	}
	address, err := json.Marshal(genericAddress{m.Conversation})
	if err != nil {
		return e, err
	}
	e.Said = &Said{Key: m.Conversation, MessageKey: m.key(in), Opens: true, Title: m.Title, Body: said, Sender: m.Sender, Address: address, Metadata: metadata}
	return e, nil
}

// genericReply is what is posted to the integration's replyUrl.
type genericReply struct {
	ID           string `json:"id"` // also in X-Delivery-Id
	Conversation string `json:"conversation"`
	ThreadID     string `json:"thread_id"`
	Message      string `json:"message"`
	Failed       bool   `json:"failed"`
}

func (generic) Post(ctx context.Context, o Outside, to json.RawMessage, r Reply) (string, error) {
	if o.Config.ReplyURL == "" {
		return "", nil // nobody wants it
	}
	var address genericAddress
	if json.Unmarshal(to, &address) != nil || address.Conversation == "" {
		return "", errNowhere
	}
	body, err := json.Marshal(genericReply{r.ID, address.Conversation, r.ThreadID, r.Body, r.Failed})
	if err != nil {
		return "", err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, o.Config.ReplyURL, bytes.NewReader(body))
	if err != nil {
		return "", &provider.Error{Kind: provider.Refused, Reason: "replyUrl cannot be understood"}
	}
	at := strconv.FormatInt(time.Now().Unix(), 10)
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set(timestampHeader, at)
	q.Header.Set(deliveryHeader, r.ID)
	q.Header.Set(signatureHeader, "sha256="+hex.EncodeToString(genericMAC(o.Secrets.Signing, replyDirection, at, body)))
	if _, err := provider.Do(ctx, o.Client, q, nil); err != nil {
		return "", err
	}
	return r.ID, nil
}

// Find finds nothing: what may have arrived is posted again under the same id, by which its receiver takes it once.
func (generic) Find(context.Context, Outside, json.RawMessage, string, time.Time) (string, bool, error) {
	return "", false, nil
}
