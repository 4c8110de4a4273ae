package tracker

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/agentplatform/agentplatform/pkg/provider"
	"github.com/agentplatform/agentplatform/pkg/text"
)

// jira is Jira Cloud (developer.atlassian.com/cloud/jira/platform/webhooks). What a webhook with a secret sends is signed with HMAC-SHA256 over the body, as
// "sha256=" and hexadecimal digits. The bearer token that an OAuth app's own webhooks carry says nothing of the body, so it is no signature here. An attempt
// that fails with 5xx is made again up to five times, 15 minutes apart, under the same id.
type jira struct{}

const jiraAge = 24 * time.Hour

func (jira) OAuth() OAuth {
	return OAuth{AuthorizeURL: "https://auth.atlassian.com/authorize", TokenURL: "https://auth.atlassian.com/oauth/token",
		Scopes: []string{"read:jira-work", "read:jira-user", "read:me", "offline_access"}, ScopeJoin: " ",
		Extra: url.Values{"audience": {"api.atlassian.com"}, "prompt": {"consent"}}}
}

func (jira) Handshake(Inbound) (h Handshake, is bool) { return h, false }

func (jira) Verify(in Inbound, secret string) error {
	given, is := strings.CutPrefix(in.Header("X-Hub-Signature"), "sha256=")
	if !is || !provider.SameHex(given, provider.MAC(secret, in.Body)) {
		return ErrUnverified
	}
	var sent struct {
		At int64 `json:"timestamp"` // milliseconds
	}
	if read(in.Body, &sent) != nil || !recent(millis(sent.At), in.Now, jiraAge) {
		return ErrUnverified
	}
	return nil
}

func (jira) Word(body []byte) string {
	var b jiraBody
	if read(body, &b) != nil {
		return ""
	}
	return word(b.Event)
}

func (jira) DeliveryID(in Inbound) string { return id(in.Header("X-Atlassian-Webhook-Identifier")) }

type jiraPerson struct {
	AccountID string `json:"accountId"`
	Name      string `json:"displayName"`
}

func (p *jiraPerson) person() Person {
	if p == nil {
		return Person{}
	}
	return Person{ID: id(p.AccountID), Name: line(p.Name)}
}

type jiraStatus struct {
	Name     string `json:"name"`
	Category struct {
		Key string `json:"key"`
	} `json:"statusCategory"`
}

func (s jiraStatus) stage() Stage {
	switch s.Category.Key {
	case "new":
		return Open
	case "indeterminate":
		return Started
	case "done":
		return Done
	}
	return ""
}

// jiraIssue is an issue in an event, which may lack any field, and of the API.
type jiraIssue struct {
	ID     string `json:"id"`
	Self   string `json:"self"`
	Key    string `json:"key"`
	Fields struct {
		Summary  string                 `json:"summary"`
		Status   *jiraStatus            `json:"status"`
		Assignee text.Patch[jiraPerson] `json:"assignee"`
		Due      text.Patch[string]     `json:"duedate"`
		Updated  string                 `json:"updated"`
		Reporter *jiraPerson            `json:"reporter"`
	} `json:"fields"`
}

func (i jiraIssue) envelope(site string) Envelope {
	e := Envelope{Provider: "jira", TaskID: digits(i.ID), Source: SourceSynthetic, UpdatedAt: moment(i.Fields.Updated)}
	if key := id(i.Key); key != "" {
		e.Key = known(key)
		if to := link("https://" + site + "/browse/" + key); strings.Contains(site, ".") && to != "" {
			e.URL = known(to)
		}
	}
	if title := line(i.Fields.Summary); title != "" {
		e.Title = known(title)
	}
	if s := i.Fields.Status; s != nil {
		e.Status, e.StatusType = known(line(s.Name)), known(s.stage())
	}
	if i.Fields.Assignee.Set {
		e.Assignee = known(i.Fields.Assignee.Value.person())
	}
	if i.Fields.Due.Set {
		e.Due = known("")
		if i.Fields.Due.Value != nil {
			e.Due = known(day(*i.Fields.Due.Value))
		}
	}
	e.Whole = e.Title.Set && e.Status.Set && e.Assignee.Set && e.Due.Set // of a comment's issue only some is said
	return e
}

type jiraChange struct {
	Field   string `json:"field"`
	FieldID string `json:"fieldId"` // older sites do not say it
	From    string `json:"from"`
	Name    string `json:"toString"`
}

func (c jiraChange) is() string {
	if c.FieldID != "" {
		return strings.ToLower(c.FieldID)
	}
	return strings.ToLower(c.Field)
}

type jiraBody struct {
	At        int64       `json:"timestamp"`
	Event     string      `json:"webhookEvent"`
	User      *jiraPerson `json:"user"`
	Issue     jiraIssue   `json:"issue"`
	Changelog struct {
		Items []jiraChange `json:"items"`
	} `json:"changelog"`
	Comment *struct {
		Self   string          `json:"self"`
		Body   json.RawMessage `json:"body"` // text, or a document
		Author *jiraPerson     `json:"author"`
	} `json:"comment"`
}

func (jira) Normalize(body []byte) ([]Event, error) {
	var b jiraBody
	if err := read(body, &b); err != nil {
		return nil, err
	}
	var events []Event
	switch b.Event {
	case "jira:issue_created":
		if b.Issue.Fields.Assignee.Value != nil {
			events = b.tell(events, Assignment, "")
		} else {
			events = b.tell(events, Other, "created")
		}
	case "jira:issue_updated":
		events = b.updated()
	case "jira:issue_deleted":
		events = b.tell(events, Other, "deleted")
		for i := range events {
			events[i].Envelope.Gone = true
		}
	case "comment_created":
		events = b.commented()
	}
	return numbered(body, events), nil
}

// tell adds an event, if the body says of which task.
func (b jiraBody) tell(events []Event, k Kind, detail string) []Event {
	account := jiraSite(b.Issue.Self)
	e := Event{Kind: k, Account: account, At: millis(b.At), Actor: b.User.person(), Detail: detail, Envelope: b.Issue.envelope(account)}
	if e.TaskID = e.Envelope.TaskID; e.TaskID == "" {
		return events
	}
	before := ""
	for _, c := range b.Changelog.Items {
		if c.is() == "assignee" {
			before = id(c.From)
		}
	}
	e.PersonIDs = people(e.Envelope.AssigneeID(), before, e.Actor.ID, b.Issue.Fields.Reporter.person().ID)
	return append(events, e)
}

func (b jiraBody) updated() (events []Event) {
	other := ""
	for _, c := range b.Changelog.Items[:min(len(b.Changelog.Items), maxEvents)] {
		switch c.is() {
		case "assignee":
			events = b.tell(events, Assignment, "")
		case "status":
			events = b.tell(events, Status, "")
		case "duedate":
			events = b.tell(events, DueDate, "")
		case "summary":
			other = "changed the title of"
		case "rank", "resolution": // an order in a list, and what goes with a status
		default:
			if other == "" && line(c.Field) != "" {
				other = "changed the " + line(strings.ToLower(c.Field)) + " of"
			}
		}
	}
	if len(events) == 0 && other != "" {
		events = b.tell(nil, Other, other)
	}
	return events
}

// commented is a comment; some sites do not say of which issue but in its address.
func (b jiraBody) commented() []Event {
	if b.Comment == nil {
		return nil
	}
	if b.Issue.ID == "" {
		_, rest, _ := strings.Cut(b.Comment.Self, "/issue/")
		b.Issue.ID, _, _ = strings.Cut(rest, "/")
		b.Issue.Self = b.Comment.Self
	}
	if b.User == nil {
		b.User = b.Comment.Author
	}
	var said string
	_ = json.Unmarshal(b.Comment.Body, &said) // a document is read where it is
	return b.tell(nil, Comment, line(said))
}

// jiraSite is the site that an address belongs to: its host, or its id if it is behind the gateway.
func jiraSite(self string) string {
	u, err := url.Parse(self)
	if err != nil || u.Scheme != "https" {
		return ""
	}
	if rest, is := strings.CutPrefix(u.Path, "/ex/jira/"); is && u.Host == "api.atlassian.com" {
		site, _, _ := strings.Cut(rest, "/")
		return id(site)
	}
	return id(strings.ToLower(u.Host))
}

const jiraAPI = "https://api.atlassian.com"

type jiraResource struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	URL  string `json:"url"`
}

func (j jira) Whoami(ctx context.Context, client *http.Client, c Config, access string) (Identity, error) {
	var me struct {
		AccountID string `json:"account_id"`
		Name      string `json:"name"`
	}
	if _, err := call(ctx, client, http.MethodGet, c.at(jiraAPI, "/me"), access, nil, &me); err != nil {
		return Identity{}, err
	}
	sites, err := j.sites(ctx, client, c, access)
	who := Identity{UserID: id(me.AccountID), Name: line(me.Name)}
	if len(sites) == 1 {
		who.Account = id(sites[0].ID)
	}
	for i, s := range sites {
		if i > 0 {
			who.AccountName += ", "
		}
		who.AccountName += line(s.Name)
	}
	who.AccountName = line(who.AccountName)
	return who, err
}

// sites are those that the token is good for, each once.
func (jira) sites(ctx context.Context, client *http.Client, c Config, access string) (sites []jiraResource, err error) {
	var all []jiraResource
	_, err = call(ctx, client, http.MethodGet, c.at(jiraAPI, "/oauth/token/accessible-resources"), access, nil, &all)
	seen := map[string]bool{}
	for _, s := range all {
		if !seen[s.ID] { // a site with two products is named twice
			seen[s.ID] = true
			sites = append(sites, s)
		}
	}
	return sites, err
}

func (j jira) Live(ctx context.Context, client *http.Client, c Config, access string, e *Event) (Envelope, error) {
	sites, err := j.sites(ctx, client, c, access)
	if err != nil {
		return Envelope{}, err
	}
	for _, s := range sites {
		host := jiraSite(s.URL)
		if host == "" || e.Account != s.ID && e.Account != host || c.Account != "" && c.Account != s.ID {
			continue
		}
		var issue jiraIssue
		address := c.at(jiraAPI, "/ex/jira/"+url.PathEscape(s.ID)+"/rest/api/3/issue/"+url.PathEscape(e.TaskID)+"?fields=summary,status,assignee,duedate,updated")
		if _, err := call(ctx, client, http.MethodGet, address, access, nil, &issue); err != nil {
			return Envelope{}, err
		}
		if issue.ID != e.TaskID {
			break
		}
		return live(issue.envelope(host)), nil
	}
	return Envelope{}, &provider.Error{Kind: provider.Missing, Reason: "Jira has no such issue on the sites of the connection"}
}
