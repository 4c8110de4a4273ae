package tracker

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/agentplatform/agentplatform/pkg/provider"
	"github.com/agentplatform/agentplatform/pkg/text"
)

// asana is Asana (developers.asana.com/docs/webhooks-guide). A webhook begins with a handshake, whose header has the secret that deliveries are then signed
// with: HMAC-SHA256 over the body, in hexadecimal digits. A delivery has any number of events, none too, and no id; an attempt that fails is made again for a
// day, perhaps with further events: so what was taken in is known event by event. Events have ids only: what a task is called, and who its people are,
// Asana has to be asked.
type asana struct{}

const asanaAge = 25 * time.Hour

func (asana) OAuth() OAuth {
	return OAuth{AuthorizeURL: "https://app.asana.com/-/oauth_authorize", TokenURL: "https://app.asana.com/-/oauth_token", RevokeURL: "https://app.asana.com/-/oauth_revoke",
		Scopes: []string{"tasks:read", "users:read", "stories:read", "projects:read", "workspaces:read"}, ScopeJoin: " "}
}

func (asana) Handshake(in Inbound) (h Handshake, is bool) {
	secret := in.Header("X-Hook-Secret")
	if in.Header("X-Hook-Signature") != "" || len(secret) < 16 || id(secret) == "" {
		return h, false
	}
	return Handshake{Secret: secret, Answer: http.Header{"X-Hook-Secret": {secret}}}, true
}

func (a asana) Verify(in Inbound, secret string) error {
	if !provider.SameHex(in.Header("X-Hook-Signature"), provider.MAC(secret, in.Body)) {
		return ErrUnverified
	}
	var b asanaBody
	_ = read(in.Body, &b) // by whoever has the secret: that it cannot be understood is told when it is normalized
	var newest time.Time
	for _, e := range b.Events {
		if at := moment(e.At); at.After(newest) {
			newest = at
		}
	}
	if len(b.Events) > 0 && !recent(newest, in.Now, asanaAge) {
		return ErrUnverified
	}
	return nil
}

func (asana) Word(body []byte) string {
	var b asanaBody
	if read(body, &b) != nil || len(b.Events) == 0 {
		return "heartbeat"
	}
	return word(b.Events[0].Resource.Type + "." + b.Events[0].Action)
}

func (asana) DeliveryID(Inbound) string { return "" }

type asanaThing struct {
	GID     string `json:"gid"`
	Name    string `json:"name,omitempty"`
	Type    string `json:"resource_type"`
	Subtype string `json:"resource_subtype"`
}

// UnmarshalJSON takes what is no such thing for one without an id: what fields are changed to is of many kinds.
func (t *asanaThing) UnmarshalJSON(b []byte) error {
	type plain asanaThing
	var p plain
	if json.Unmarshal(b, &p) == nil {
		*t = asanaThing(p)
	}
	return nil
}

func (t *asanaThing) id() string {
	if t == nil {
		return ""
	}
	return id(t.GID)
}

type asanaEvent struct {
	User     *asanaThing `json:"user"`
	At       string      `json:"created_at"`
	Action   string      `json:"action"`
	Resource asanaThing  `json:"resource"`
	Parent   *asanaThing `json:"parent"`
	Change   struct {
		Field   string                 `json:"field"`
		Action  string                 `json:"action"`
		New     text.Patch[asanaThing] `json:"new_value"`
		Added   *asanaThing            `json:"added_value"`
		Removed *asanaThing            `json:"removed_value"`
	} `json:"change"`
}

// asanaTwin is the field that changes with another one: who completes a task, or gives it a date, changes both, which is one thing that was done.
var asanaTwin = map[string]string{"completed_at": "completed", "due_at": "due_on"}

// id is the same for the same event: Asana gives it none. Two changes of one moment differ in their field.
func (e asanaEvent) id() string {
	c := e.Change
	said, _ := json.Marshal([]string{e.At, e.Action, e.User.id(), e.Resource.GID, e.Parent.id(), cmp.Or(asanaTwin[c.Field], c.Field), c.Action, c.New.Value.id(), c.Added.id(), c.Removed.id()})
	sum := sha256.Sum256(said)
	return hex.EncodeToString(sum[:])
}

type asanaBody struct {
	Events []asanaEvent `json:"events"`
}

func (asana) Normalize(body []byte) (events []Event, err error) {
	var b asanaBody
	if err := read(body, &b); err != nil {
		return nil, err
	}
	left := map[string]bool{} // tasks that left a section: they are in another one now
	for _, e := range b.Events {
		if e.Action == "removed" && e.Parent != nil && e.Parent.Type == "section" {
			left[e.Resource.GID] = true
		}
	}
	once := map[string]bool{}
	for _, e := range b.Events[:min(len(b.Events), maxEvents)] {
		if found, is := e.normal(left[e.Resource.GID]); is && !once[found.ID] {
			once[found.ID] = true
			events = append(events, found)
		}
	}
	return events, nil
}

// normal is the event in the platform's words; false: it is not about a task, or it says again what another one does.
func (e asanaEvent) normal(moved bool) (n Event, is bool) {
	n = Event{ID: e.id(), Shared: true, TaskID: digits(e.Resource.GID), At: moment(e.At), Actor: Person{ID: e.User.id()}}
	switch {
	case e.Resource.Type == "story":
		n.Kind, n.TaskID, n.story = Comment, digits(e.Parent.id()), digits(e.Resource.GID)
		is = e.Action == "added" && e.Resource.Subtype == "comment_added" && e.Parent != nil && e.Parent.Type == "task"
	case e.Resource.Type == "task" && e.Action == "changed":
		n.Kind, n.Detail, is = e.changed()
	case e.Resource.Type == "task":
		n.Kind, n.Detail, is = e.placed(moved)
	}
	n.Envelope = Envelope{Provider: "asana", TaskID: n.TaskID, Source: SourceSynthetic, UpdatedAt: n.At, Gone: is && n.Detail == "deleted", back: is && n.Detail == "restored"}
	if n.Kind == Assignment && e.Change.New.Set {
		n.Envelope.Assignee = known(Person{ID: e.Change.New.Value.id()})
	}
	n.PersonIDs = people(n.Envelope.AssigneeID(), e.Change.Removed.id(), n.Actor.ID)
	return n, is && n.TaskID != ""
}

func (e asanaEvent) changed() (k Kind, detail string, is bool) {
	switch e.Change.Field {
	case "assignee":
		return Assignment, "", true
	case "completed", "completed_at":
		return Status, "", true
	case "due_on", "due_at":
		return DueDate, "", true
	case "name":
		return Other, "changed the title of", true
	case "", "followers", "memberships", "projects", "likes", "hearts", "num_likes", "num_hearts", "liked", "hearted", "assignee_status", "html_notes":
		return Other, "", false // told of otherwise, or of no weight
	}
	return Other, line("changed the " + strings.ReplaceAll(e.Change.Field, "_", " ") + " of"), true
}

func (e asanaEvent) placed(moved bool) (k Kind, detail string, is bool) {
	inSection := e.Parent != nil && e.Parent.Type == "section"
	switch e.Action {
	case "added":
		if inSection {
			return Status, "", moved // else it is where it was made
		}
		return Other, "added", true
	case "removed":
		return Other, "removed", !inSection
	case "deleted":
		return Other, "deleted", true
	case "undeleted":
		return Other, "restored", true
	}
	return Other, "", false
}

const asanaAPI = "https://app.asana.com"

func (asana) Whoami(ctx context.Context, client *http.Client, c Config, access string) (Identity, error) {
	var said struct {
		Data struct {
			GID        string       `json:"gid"`
			Name       string       `json:"name"`
			Workspaces []asanaThing `json:"workspaces"`
		} `json:"data"`
	}
	_, err := call(ctx, client, http.MethodGet, c.at(asanaAPI, "/api/1.0/users/me?opt_fields=name,workspaces.name"), access, nil, &said)
	who := Identity{UserID: id(said.Data.GID), Name: line(said.Data.Name)}
	if spaces := said.Data.Workspaces; len(spaces) > 0 {
		names := make([]string, len(spaces))
		for i, w := range spaces {
			names[i] = w.Name
		}
		who.AccountName = line(strings.Join(names, ", "))
		if len(spaces) == 1 {
			who.Account = spaces[0].id()
		}
	}
	return who, err
}

type asanaTask struct {
	GID         string      `json:"gid"`
	Name        string      `json:"name"`
	URL         string      `json:"permalink_url"`
	Completed   bool        `json:"completed"`
	Assignee    *asanaThing `json:"assignee"`
	DueOn       string      `json:"due_on"`
	DueAt       string      `json:"due_at"`
	ModifiedAt  string      `json:"modified_at"`
	Workspace   *asanaThing `json:"workspace"`
	Memberships []struct {
		Section *asanaThing `json:"section"`
	} `json:"memberships"`
}

func (t asanaTask) envelope() Envelope {
	e := Envelope{Provider: "asana", TaskID: id(t.GID), Title: known(line(t.Name)), URL: known(link(t.URL)), UpdatedAt: moment(t.ModifiedAt)}
	e.Status, e.StatusType, e.Due = known("Incomplete"), known(Open), known(day(t.DueOn))
	for _, m := range t.Memberships[:min(len(t.Memberships), 1)] {
		if m.Section != nil && line(m.Section.Name) != "" {
			e.Status = known(line(m.Section.Name))
		}
	}
	if t.Completed {
		e.Status, e.StatusType = known("Completed"), known(Done)
	}
	if at := moment(t.DueAt); !at.IsZero() {
		e.Due = known(at.Format(time.RFC3339))
	}
	if t.Assignee != nil {
		e.Assignee = known(Person{ID: t.Assignee.id(), Name: line(t.Assignee.Name)})
	}
	return e
}

const asanaFields = "name,completed,due_on,due_at,modified_at,permalink_url,assignee.name,memberships.section.name,workspace.gid"

func (a asana) Live(ctx context.Context, client *http.Client, c Config, access string, e *Event) (Envelope, error) {
	var said struct {
		Data asanaTask `json:"data"`
	}
	address := c.at(asanaAPI, "/api/1.0/tasks/"+url.PathEscape(e.TaskID)+"?opt_fields="+asanaFields)
	if _, err := call(ctx, client, http.MethodGet, address, access, nil, &said); err != nil {
		return Envelope{}, err
	}
	if said.Data.GID != e.TaskID {
		return Envelope{}, &provider.Error{Kind: provider.Missing, Reason: "Asana has no such task"}
	}
	if c.Account != "" && said.Data.Workspace.id() != c.Account {
		return Envelope{}, &provider.Error{Kind: provider.Missing, Reason: "Asana has no such task in the workspace of the connection"}
	}
	if e.story != "" {
		a.comment(ctx, client, c, access, e)
	}
	return live(said.Data.envelope()), nil
}

// comment adds what was said, and by whom. Without it the event is told all the same.
func (asana) comment(ctx context.Context, client *http.Client, c Config, access string, e *Event) {
	var said struct {
		Data struct {
			Text string     `json:"text"`
			By   asanaThing `json:"created_by"`
		} `json:"data"`
	}
	address := c.at(asanaAPI, "/api/1.0/stories/"+url.PathEscape(e.story)+"?opt_fields=text,created_by.name")
	if _, err := call(ctx, client, http.MethodGet, address, access, nil, &said); err == nil {
		e.Detail = line(said.Data.Text)
		if said.Data.By.id() == e.Actor.ID {
			e.Actor.Name = line(said.Data.By.Name)
		}
	}
}
