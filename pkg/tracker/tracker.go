// Package tracker knows task trackers: how each signs what it sends, what its events say, how a task and a person are asked for, and where its OAuth is.
//
// It holds no state and knows no tenant. A provider is one file, and its fixtures in testdata. What is read was sent by strangers as long as Verify has not
// said otherwise, and is text of people after that: nothing here is an instruction.
package tracker

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"
)

// Provider is a task tracker. All methods may be called from many goroutines.
type Provider interface {
	// OAuth is where people connect.
	OAuth() OAuth
	// Whoami is whose token access is. Errors are *provider.Error.
	Whoami(ctx context.Context, client *http.Client, c Config, access string) (Identity, error)

	// Handshake answers a delivery that is not an event but asks whether this is the place. None of Event, and no tenant's data, is touched by it.
	Handshake(in Inbound) (h Handshake, is bool)
	// Verify says who sent a delivery: ErrUnverified if it was not somebody who has the secret, or if it is too old.
	Verify(in Inbound, secret string) error
	// DeliveryID is the same for each attempt to deliver one thing, and another for every other thing.
	DeliveryID(in Inbound) string
	// Word is what a delivery is about, in the provider's words, for the log.
	Word(body []byte) string
	// Normalize says what has happened, in order: nothing for what is not about a task. Only a body that cannot be understood is an error (fault.ValidationError).
	Normalize(body []byte) ([]Event, error)
	// Live asks for the event's task as it is now, and adds to the event what only the provider can say of it. A task of another account than c's is
	// missing. Errors are *provider.Error.
	Live(ctx context.Context, client *http.Client, c Config, access string, e *Event) (Envelope, error)
}

// Of is the provider of a name.
func Of(name string) (p Provider, ok bool) {
	switch name {
	case "linear":
		return linear{}, true
	case "jira":
		return jira{}, true
	case "asana":
		return asana{}, true
	}
	return nil, false
}

// Names are the providers that there are.
func Names() []string { return []string{"linear", "jira", "asana"} }

// OAuth is a provider's authorization server. PKCE is for all: Jira does not document it, and passes over what it does not know. Client id and secret go in the body.
type OAuth struct {
	AuthorizeURL string
	TokenURL     string
	RevokeURL    string     // empty: tokens cannot be revoked
	Scopes       []string   // that the platform asks for, unless an integration says others
	ScopeJoin    string     // between scopes in an address
	Extra        url.Values // of the authorization address, besides what OAuth 2 has
}

// At is the same with another origin: of a test, or of a host of one's own. Empty: as it is.
func (o OAuth) At(origin string) OAuth {
	if origin != "" {
		o.AuthorizeURL, o.TokenURL, o.RevokeURL = moved(o.AuthorizeURL, origin), moved(o.TokenURL, origin), moved(o.RevokeURL, origin)
	}
	return o
}

func moved(address, origin string) string {
	u, err := url.Parse(address)
	to, toErr := url.Parse(origin)
	if address == "" || err != nil || toErr != nil {
		return address
	}
	u.Scheme, u.Host = to.Scheme, to.Host
	return u.String()
}

// Identity is who a token belongs to at a provider.
type Identity struct {
	UserID      string
	Name        string
	Account     string // the workspace or site; empty: the provider's users have no one such
	AccountName string
}

// Inbound is a delivery.
type Inbound struct {
	Header func(name string) string // "" without it; of any case
	Body   []byte
	Now    time.Time
}

// ErrUnverified says that the signature is missing, wrong or too old. There is one text, so that nobody learns which.
var ErrUnverified = errors.New("the delivery is not signed with the webhook's secret")

// Handshake is what a provider wants to hear before it sends events.
type Handshake struct {
	Secret string      // that it will sign with: kept if the webhook has none yet
	Answer http.Header // of the reply, which has no body
}

// Kind is what an event is about.
type Kind string

const (
	Assignment Kind = "assignment"
	Status     Kind = "status"
	DueDate    Kind = "due_date"
	Comment    Kind = "comment"
	Other      Kind = "other"
)

// Pushes reports whether an event is told to people's phones.
func (k Kind) Pushes() bool { return k == Assignment || k == Status || k == DueDate }

// Person is somebody at a provider.
type Person struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
}

// Event is something that has happened to one task. One delivery may tell of several.
type Event struct {
	ID        string // the same whenever it is told again, and no other event's of the webhook
	Shared    bool   `json:"-"` // the provider's other webhooks tell of it under this id too
	Kind      Kind
	TaskID    string    // the provider's; never empty
	Account   string    // the workspace or site that the task is in; empty: task ids are unique without it
	At        time.Time // by the provider's clock
	Actor     Person    // who did it; zero: not said
	Detail    string    // of a comment, its text; of Other, what was done: "created", "deleted", "changed the title of"
	PersonIDs []string  // whose connection may ask for the task: the assignee first, then who was it before, then the actor
	Envelope  Envelope  // what the event itself says of the task
	story     string    // Asana's name of the comment
}
