package mail

// Order is what the function send-mail is asked: one mail. Whoever asks has looked at who may be written to; where it comes from is the deployment's to say.
type Order struct {
	TenantID string   `json:"tenantId"` // whose mail it is, for the log
	TurnID   string   `json:"turnId"`   // of the turn that sends it, likewise; empty: no turn does
	To       []string `json:"to"`       // as Message has it, and what follows
	ReplyTo  string   `json:"replyTo,omitempty"`
	Subject  string   `json:"subject"`
	Text     string   `json:"text"`
	HTML     string   `json:"html,omitempty"`

	InReplyTo  string   `json:"inReplyTo,omitempty"`
	References []string `json:"references,omitempty"`
}

// Sent is its answer.
type Sent struct {
	MessageID string `json:"messageId"` // as the receivers see it, in its angle brackets
}

// Function is the manifest name of the function that takes an Order.
const Function = "send-mail"
