package tracker

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/agentplatform/agentplatform/pkg/provider"
)

// linear is Linear (linear.app/developers/webhooks). What it sends is signed with HMAC-SHA256 over the body, in hexadecimal digits, and says in the body when
// it was sent. An attempt that fails is made again after a minute, an hour and six hours, with the same body: so it may be seven hours old, and what was
// taken in is known by its id and by its body.
type linear struct{}

const linearAge = 7*time.Hour + 30*time.Minute

func (linear) OAuth() OAuth {
	return OAuth{AuthorizeURL: "https://linear.app/oauth/authorize", TokenURL: "https://api.linear.app/oauth/token", RevokeURL: "https://api.linear.app/oauth/revoke",
		Scopes: []string{"read"}, ScopeJoin: ",", Extra: url.Values{"prompt": {"consent"}}}
}

func (linear) Handshake(Inbound) (h Handshake, is bool) { return h, false }

func (linear) Verify(in Inbound, secret string) error {
	if !provider.SameHex(in.Header("Linear-Signature"), provider.MAC(secret, in.Body)) {
		return ErrUnverified
	}
	var sent struct {
		At int64 `json:"webhookTimestamp"` // milliseconds; a header of that name is not signed
	}
	if read(in.Body, &sent) != nil || !recent(millis(sent.At), in.Now, linearAge) {
		return ErrUnverified
	}
	return nil
}

func (linear) Word(body []byte) string {
	var b linearBody
	if read(body, &b) != nil {
		return ""
	}
	return word(b.Type + "." + b.Action)
}

func (linear) DeliveryID(in Inbound) string { return id(in.Header("Linear-Delivery")) }

type linearPerson struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

func (p *linearPerson) person() Person {
	if p == nil {
		return Person{}
	}
	return Person{ID: id(p.ID), Name: line(p.Name)}
}

type linearState struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

func (s linearState) stage() Stage {
	switch s.Type {
	case "started":
		return Started
	case "completed":
		return Done
	case "canceled", "duplicate":
		return Canceled
	case "triage", "backlog", "unstarted":
		return Open
	}
	return ""
}

// linearIssue is an issue in an event, and of the API.
type linearIssue struct {
	ID         string `json:"id"`
	Identifier string `json:"identifier"`
	Number     int    `json:"number"`
	Team       struct {
		Key string `json:"key"`
	} `json:"team"`
	Title      string        `json:"title"`
	URL        string        `json:"url"`
	State      *linearState  `json:"state"`
	AssigneeID string        `json:"assigneeId"`
	Assignee   *linearPerson `json:"assignee"`
	DueDate    string        `json:"dueDate"`
	CreatorID  string        `json:"creatorId"`
	UpdatedAt  string        `json:"updatedAt"`
	ArchivedAt string        `json:"archivedAt"`
	Trashed    bool          `json:"trashed"`
}

// envelope is what is known of an issue that was told whole: what it does not name it has not.
func (i linearIssue) envelope() Envelope {
	e := i.brief()
	if i.State != nil {
		e.Status, e.StatusType = known(line(i.State.Name)), known(i.State.stage())
	}
	assignee := i.Assignee.person()
	if assignee.ID == "" {
		assignee.ID = id(i.AssigneeID)
	}
	e.Assignee, e.Due, e.UpdatedAt = known(assignee), known(day(i.DueDate)), moment(i.UpdatedAt)
	e.Gone, e.Whole = i.Trashed || i.ArchivedAt != "", true
	return e
}

// brief is what is known of an issue that is only named.
func (i linearIssue) brief() Envelope {
	e := Envelope{Provider: "linear", TaskID: id(i.ID), Source: SourceSynthetic}
	key := id(i.Identifier)
	if key == "" && i.Team.Key != "" && i.Number > 0 { // as it was before 2024
		key = id(i.Team.Key + "-" + strconv.Itoa(i.Number))
	}
	if key != "" {
		e.Key = known(key)
	}
	if title := line(i.Title); title != "" {
		e.Title = known(title)
	}
	if to := link(i.URL); to != "" {
		e.URL = known(to)
	}
	return e
}

type linearBody struct {
	Action  string        `json:"action"`
	Type    string        `json:"type"`
	Actor   *linearPerson `json:"actor"`
	Created string        `json:"createdAt"`
	URL     string        `json:"url"`
	Org     string        `json:"organizationId"`
	Sent    int64         `json:"webhookTimestamp"`
}

func (b linearBody) event(k Kind, task Envelope) Event {
	at := moment(b.Created)
	if at.IsZero() {
		at = millis(b.Sent)
	}
	return Event{Kind: k, TaskID: task.TaskID, Account: id(b.Org), At: at, Actor: b.Actor.person(), Envelope: task}
}

func (l linear) Normalize(body []byte) ([]Event, error) {
	var b linearBody
	if err := read(body, &b); err != nil {
		return nil, err
	}
	var events []Event
	var err error
	switch b.Type {
	case "Issue":
		events, err = l.issue(body, b)
	case "Comment":
		events, err = l.comment(body, b)
	}
	return numbered(body, events), err
}

func (linear) issue(body []byte, b linearBody) ([]Event, error) {
	var said struct {
		Data linearIssue    `json:"data"`
		Old  map[string]any `json:"updatedFrom"`
	}
	if err := read(body, &said); err != nil {
		return nil, err
	}
	if said.Data.URL == "" {
		said.Data.URL = b.URL
	}
	task := said.Data.envelope()
	if task.TaskID == "" {
		return nil, nil
	}
	before, _ := said.Old["assigneeId"].(string)
	var events []Event
	tell := func(k Kind, detail string) {
		e := b.event(k, task)
		if task.UpdatedAt.After(e.At) {
			e.At = task.UpdatedAt
		}
		e.Detail, e.PersonIDs = detail, people(task.AssigneeID(), id(before), e.Actor.ID, id(said.Data.CreatorID))
		events = append(events, e)
	}
	switch b.Action {
	case "create":
		if task.AssigneeID() != "" {
			tell(Assignment, "")
		} else {
			tell(Other, "created")
		}
	case "update":
		if !linearUpdate(said.Old, tell) {
			return nil, nil
		}
	case "remove":
		task.Gone = true
		tell(Other, "removed")
	}
	return events, nil
}

// linearNoise is what changes although nobody changed anything that a card shows.
var linearNoise = map[string]bool{"updatedAt": true, "sortOrder": true, "boardOrder": true, "prioritySortOrder": true, "subIssueSortOrder": true, "subscriberIds": true}

// linearUpdate tells of each thing that was changed: old has what it was before, null too.
func linearUpdate(old map[string]any, tell func(k Kind, detail string)) bool {
	told, other := false, false
	for _, change := range []struct {
		name string
		kind Kind
	}{{"assigneeId", Assignment}, {"stateId", Status}, {"dueDate", DueDate}} {
		if _, changed := old[change.name]; changed {
			tell(change.kind, "")
			told = true
		}
	}
	for name := range old {
		other = other || !linearNoise[name]
	}
	_, title := old["title"]
	switch {
	case told:
	case title:
		tell(Other, "changed the title of")
	case other:
		tell(Other, "changed")
	}
	return told || other
}

func (linear) comment(body []byte, b linearBody) ([]Event, error) {
	var said struct {
		Data struct {
			Body    string        `json:"body"`
			IssueID string        `json:"issueId"`
			UserID  string        `json:"userId"`
			User    *linearPerson `json:"user"`
			Issue   linearIssue   `json:"issue"`
		} `json:"data"`
	}
	if err := read(body, &said); err != nil {
		return nil, err
	}
	c := said.Data
	if c.Issue.ID == "" {
		c.Issue.ID = c.IssueID
	}
	task := c.Issue.brief()
	if b.Action != "create" || task.TaskID == "" { // of a document
		return nil, nil
	}
	e := b.event(Comment, task)
	if e.Actor.ID == "" {
		e.Actor = c.User.person()
	}
	e.Detail, e.PersonIDs = line(c.Body), people(e.Actor.ID, id(c.UserID))
	return []Event{e}, nil
}

const linearAPI = "https://api.linear.app"

func (l linear) Whoami(ctx context.Context, client *http.Client, c Config, access string) (Identity, error) {
	var said struct {
		Viewer struct {
			linearPerson
			Organization linearPerson `json:"organization"`
		} `json:"viewer"`
	}
	err := l.ask(ctx, client, c, access, `query { viewer { id name organization { id name } } }`, nil, &said)
	v := said.Viewer
	return Identity{UserID: id(v.ID), Name: line(v.Name), Account: id(v.Organization.ID), AccountName: line(v.Organization.Name)}, err
}

func (l linear) Live(ctx context.Context, client *http.Client, c Config, access string, e *Event) (Envelope, error) {
	if c.Account != e.Account {
		return Envelope{}, &provider.Error{Kind: provider.Missing, Reason: "the issue is not in the workspace of the connection"}
	}
	var said struct {
		Issue *linearIssue `json:"issue"`
	}
	err := l.ask(ctx, client, c, access, `query Task($id: String!) { issue(id: $id) { id identifier title url dueDate updatedAt archivedAt trashed state { name type } assignee { id name } } }`,
		map[string]any{"id": e.TaskID}, &said)
	if err != nil {
		return Envelope{}, err
	}
	if said.Issue == nil || id(said.Issue.ID) != e.TaskID {
		return Envelope{}, &provider.Error{Kind: provider.Missing, Reason: "Linear has no such issue"}
	}
	return live(said.Issue.envelope()), nil
}

// ask makes a GraphQL call. Linear says in the answer why one failed, whatever its status.
func (linear) ask(ctx context.Context, client *http.Client, c Config, access, query string, variables map[string]any, out any) error {
	said := struct {
		Data   any `json:"data"`
		Errors []struct {
			Extensions struct {
				Type string `json:"type"`
				Code string `json:"code"`
			} `json:"extensions"`
		} `json:"errors"`
	}{Data: out}
	h, err := call(ctx, client, http.MethodPost, c.at(linearAPI, "/graphql"), access, map[string]any{"query": query, "variables": variables}, &said)
	if len(said.Errors) == 0 {
		return err
	}
	switch x := said.Errors[0].Extensions; {
	case x.Code == "RATELIMITED", x.Type == "ratelimited":
		return &provider.Error{Kind: provider.Limited, Reason: "Linear was asked too often", After: resetAfter(h, "X-RateLimit-Requests-Reset")}
	case x.Code == "AUTHENTICATION_ERROR", x.Type == "authentication error":
		return &provider.Error{Kind: provider.Denied, Reason: "Linear does not take the token", Status: http.StatusUnauthorized}
	case x.Code == "FORBIDDEN", x.Type == "forbidden":
		return &provider.Error{Kind: provider.Denied, Reason: "Linear does not show this to the user", Status: http.StatusForbidden}
	case x.Code == "INPUT_ERROR", x.Type == "invalid input":
		return &provider.Error{Kind: provider.Missing, Reason: "Linear has no such issue, or does not show it"}
	}
	if err == nil {
		err = &provider.Error{Kind: provider.Refused, Reason: "Linear answers with an error"}
	}
	return err
}
