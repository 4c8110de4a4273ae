// Package channel knows conversations outside: how each provider signs what it sends, what was said, and how an answer goes back there.
//
// It holds no state and knows no tenant. A provider is one file, and its fixtures in testdata. What is read was sent by strangers as long as Verify has not
// said otherwise, and is text of people after that: nothing here is an instruction.
package channel

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

// Channel is how conversations of one provider are read and answered. All methods may be called from many goroutines.
type Channel interface {
	// Verify says whether a delivery was sent by somebody who has the secret, a moment ago: ErrUnverified if not. An empty secret verifies nothing.
	Verify(in Inbound, secret string) error
	// Read says what a delivery is about. What cannot be understood is a fault.ValidationError, and nothing else is an error.
	Read(in Inbound, c Config) (Event, error)
	// Post says something in a conversation, at the address that Read gave, and answers with the provider's id of it; "": it goes nowhere. Errors are
	// *provider.Error.
	Post(ctx context.Context, o Outside, to json.RawMessage, r Reply) (externalID string, err error)
	// Find looks for a reply whose outcome is not known, among what was said since a moment, by the provider's clock. Errors are *provider.Error, or ErrNoLook.
	Find(ctx context.Context, o Outside, to json.RawMessage, replyID string, since time.Time) (externalID string, found bool, err error)
	// check completes a configuration, or says what is wrong with it.
	check(c *Config) error
	// redact takes out of a body what is secret.
	redact(body []byte) []byte
}

var channels = map[string]Channel{
	"generic": generic{},
	"github":  github{},
	"slack":   slack{},
}

// Of is the channel of a provider.
func Of(provider string) (c Channel, ok bool) {
	c, ok = channels[provider]
	return c, ok
}

// ErrUnverified refuses a delivery, whatever is wrong with its signature.
var ErrUnverified = errors.New("channel: the signature is missing, wrong or stale")

// ErrNoLook says that the provider cannot be asked what was posted.
var ErrNoLook = errors.New("channel: the provider cannot be asked what was posted")

// Freshness is how far the clock of whoever signs may be off, and how old a delivery may be.
const Freshness = 5 * time.Minute

// Inbound is a delivery as it came.
type Inbound struct {
	Header func(name string) string // "" without it
	Body   []byte
	Now    time.Time
}

// Secrets of an integration.
type Secrets struct {
	Signing string `json:"signing,omitempty"` // what the provider signs with; generic: what answers are signed with, too
	Token   string `json:"token,omitempty"`   // what answers are posted with
}

// Outside is how a provider is reached for one integration.
type Outside struct {
	Client  *http.Client // pkg/egress's
	Config  Config
	Secrets Secrets
}

// Reply is what goes out.
type Reply struct {
	ID       string // by which Find finds it
	ThreadID string // public
	Body     string
	Failed   bool // the turn has failed, and the body says so
}

// Event is what a delivery is about.
type Event struct {
	ID     string  // the provider's id of the delivery
	Kind   string  // the provider's word for it, for the log: "app_mention", "issue_comment"
	Answer *Answer // a handshake: nothing else is done
	Said   *Said   // nil: nothing to do
	Held   string  // why the provider has kept other deliveries back, for people; "": it says nothing of that
}

// Answer is what a handshake is answered with, as JSON.
type Answer struct{ Body json.RawMessage }

// Said is what a person has said outside.
type Said struct {
	Key        string          // of the conversation, as the provider names it
	MessageKey string          // of the message, which may come in several deliveries; "": none
	Opens      bool            // may begin a thread; else it only goes on in one that there is
	Title      *string         // of a new thread
	Body       string          // Cut has made it fit
	Sender     Sender          // who has said it
	Address    json.RawMessage // where replies go
	Metadata   map[string]any  // of a new thread: {"slack": {…}}
}

// Sender is a person outside.
type Sender struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
}

// Config is what is set of an integration, each member for the providers that have it.
type Config struct {
	APIURL       string   `json:"apiUrl,omitempty"`       // slack, github: of the API. Default: the provider's own
	BotUserID    string   `json:"botUserId,omitempty"`    // slack: who the app is in the workspace; learnt when the integration is saved
	TeamID       string   `json:"teamId,omitempty"`       // slack: the workspace; learnt when the integration is saved
	EnterpriseID string   `json:"enterpriseId,omitempty"` // slack: the organization that the workspace is in, if it is in one; learnt when the integration is saved
	Mention      string   `json:"mention,omitempty"`      // github: what people write behind @. Required
	Allow        []string `json:"allow,omitempty"`        // github: the author associations that may ask. Default: OWNER, MEMBER, COLLABORATOR
	Login        string   `json:"login,omitempty"`        // github: whose the token is; learnt when the integration is saved
	ReplyURL     string   `json:"replyUrl,omitempty"`     // generic: where answers are posted; none: they stay here
}

// ParseConfig reads a provider's configuration as it is stored.
func ParseConfig(stored json.RawMessage) (c Config, err error) {
	err = json.Unmarshal(stored, &c)
	return c, err
}

// Check is a provider's configuration in its stored form, its defaults filled in. What is wrong is a fault.ValidationError that names the member.
func Check(provider string, config json.RawMessage) (json.RawMessage, error) {
	channel, ok := Of(provider)
	if !ok {
		return nil, fault.Invalid("provider %s is no channel", provider)
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(config, &members) != nil || members == nil {
		return nil, fault.Invalid("config must be a JSON object")
	}
	var c Config
	d := json.NewDecoder(strings.NewReader(string(config)))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return nil, fault.Invalid("config: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if err := channel.check(&c); err != nil {
		return nil, err
	}
	return json.Marshal(c)
}

// Redact is a body as the log may keep it.
func Redact(provider string, body []byte) []byte {
	if channel, ok := Of(provider); ok {
		return channel.redact(body)
	}
	return body
}

// Cut makes what was said fit into a message.
func Cut(body string) string {
	const more = "…"
	body = strings.ReplaceAll(strings.ToValidUTF8(body, "\uFFFD"), "\x00", "")
	if len(body) <= thread.MaxBody {
		return body
	}
	end := thread.MaxBody - len(more)
	for !utf8.RuneStart(body[end]) {
		end--
	}
	return body[:end] + more
}
