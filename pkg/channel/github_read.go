package channel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

// githubDelivery is what is read of a delivery, and what the log keeps of it.
type githubDelivery struct {
	Action      string      `json:"action,omitempty"`
	Comment     *githubItem `json:"comment,omitempty"`
	Review      *githubItem `json:"review,omitempty"`
	Issue       *githubItem `json:"issue,omitempty"`
	PullRequest *githubItem `json:"pull_request,omitempty"`
	Repository  struct {
		ID       int64  `json:"id"`
		FullName string `json:"full_name"`
	} `json:"repository"`
	Sender githubUser `json:"sender"`
}

// githubItem is an issue, a pull request, a review or a comment.
type githubItem struct {
	ID          int64           `json:"id"`
	Number      int64           `json:"number,omitempty"`
	Title       string          `json:"title,omitempty"`
	Body        string          `json:"body,omitempty"`
	User        githubUser      `json:"user"` // zero: of an account that is gone
	Association string          `json:"author_association,omitempty"`
	URL         string          `json:"html_url,omitempty"`
	App         json.RawMessage `json:"performed_via_github_app,omitempty"`
	PullRequest json.RawMessage `json:"pull_request,omitempty"` // of an issue: it is one
	ReplyTo     int64           `json:"in_reply_to_id,omitempty"`
	Path        string          `json:"path,omitempty"`
	Line        int64           `json:"line,omitempty"`
}

type githubUser struct {
	ID    int64  `json:"id"`
	Login string `json:"login"`
	Type  string `json:"type"`
}

// githubAddress is where a conversation is, or a discussion of a line in one.
type githubAddress struct {
	Repository string `json:"repository"`
	Number     int64  `json:"number"`
	Comment    int64  `json:"comment,omitempty"` // the first of the discussion
}

var githubEvents = regexp.MustCompile(`^[a-z_]{1,64}$`)

func (g github) Read(in Inbound, c Config) (Event, error) {
	e := Event{ID: in.Header("X-GitHub-Delivery"), Kind: in.Header("X-GitHub-Event")}
	switch {
	case !githubEvents.MatchString(e.Kind):
		return Event{}, fault.Invalid("the delivery has no X-GitHub-Event")
	case !deliveryIDs.MatchString(e.ID):
		return Event{Kind: e.Kind}, fault.Invalid("the delivery has no X-GitHub-Delivery")
	}
	var named struct {
		Action string `json:"action"`
	}
	body := githubBody(in.Body)
	if err := json.Unmarshal(body, &named); err != nil {
		return e, fault.Invalid("the body is no delivery of GitHub's")
	}
	if !slices.Contains(githubHeard, e.Kind+"."+named.Action) {
		return e, nil
	}
	var d githubDelivery
	if err := json.Unmarshal(body, &d); err != nil {
		return e, fault.Invalid("the body is no delivery of GitHub's")
	}
	said, about := d.said(e.Kind)
	if said == nil || about == nil || said.ID <= 0 || about.Number <= 0 || d.Repository.ID <= 0 || !repositoryName(d.Repository.FullName) {
		return e, fault.Invalid("the body is no %s of GitHub's", e.Kind)
	}
	if d.byApp(said, c) || !slices.Contains(c.Allow, said.Association) {
		return e, nil
	}
	var err error
	e.Said, err = d.heard(e.Kind, said, about, c)
	return e, err
}

// githubHeard are the events, and what of them happened, that say something.
var githubHeard = []string{"issue_comment.created", "issues.opened", "pull_request.opened", "pull_request_review.submitted", "pull_request_review_comment.created"}

// githubBody is the JSON of a delivery. Unless the webhook is set otherwise, it is in a form.
func githubBody(body []byte) []byte {
	if form, ok := bytes.CutPrefix(body, []byte("payload=")); ok {
		form, _, _ := bytes.Cut(form, []byte("&"))
		if payload, err := url.QueryUnescape(string(form)); err == nil {
			return []byte(payload)
		}
	}
	return body
}

// said is what was said, and the issue or pull request that it is about.
func (d githubDelivery) said(kind string) (said, about *githubItem) {
	switch kind {
	case "issue_comment":
		return d.Comment, d.Issue
	case "issues":
		return d.Issue, d.Issue
	case "pull_request":
		return d.PullRequest, d.PullRequest
	case "pull_request_review":
		return d.Review, d.PullRequest
	}
	return d.Comment, d.PullRequest
}

// byApp reports whether no person has said it: an app, the platform, or somebody in another's name.
func (d githubDelivery) byApp(said *githubItem, c Config) bool {
	ours := strings.Contains(said.Body, markers) && (c.Login == "" || strings.EqualFold(said.User.Login, c.Login))
	return ours || said.User.Type != "User" || said.User.ID <= 0 || said.User.ID != d.Sender.ID || there(said.App)
}

// heard is what was said, if the agent is mentioned in it.
func (d githubDelivery) heard(kind string, said, about *githubItem, c Config) (*Said, error) {
	if !githubLogins.MatchString(said.User.Login) {
		return nil, fault.Invalid("the body is no %s of GitHub's", kind)
	}
	body := Cut(said.Body)
	found := mentions(body, c.Mention)
	if len(found) == 0 && (said != about || len(mentions(said.Title, c.Mention)) == 0) {
		return nil, nil
	}
	body = without(body, found)
	if body == "" && said == about {
		body = line(said.Title, 500)
	}
	at := githubAddress{Repository: d.Repository.FullName, Number: about.Number}
	if kind == "pull_request_review_comment" {
		if at.Comment = said.ReplyTo; at.Comment <= 0 {
			at.Comment = said.ID // a reply answers the first of a discussion only
		}
		body = said.place() + body
	}
	address, err := json.Marshal(at)
	if err != nil {
		return nil, err
	}
	of := "issue"
	if about == d.PullRequest || there(about.PullRequest) {
		of = "pull_request"
	}
	sender := Sender{ID: strconv.FormatInt(said.User.ID, 10), Name: said.User.Login}
	return &Said{
		Key:        fmt.Sprintf("%d#%d", d.Repository.ID, at.Number), // a repository's name may become another's
		MessageKey: fmt.Sprintf("%d/%s/%d", d.Repository.ID, kind, said.ID),
		Opens:      true,
		Title:      title(about.Title),
		Body:       Cut(speaker(sender) + attached(body, nil)),
		Sender:     sender,
		Address:    address,
		Metadata:   map[string]any{"github": map[string]any{"repository": at.Repository, "number": at.Number, "kind": of, "url": line(about.URL, 500)}},
	}, nil
}

// place says what a comment is about in a pull request, where a file is named.
func (i githubItem) place() string {
	switch path := strings.ReplaceAll(line(i.Path, 300), "`", "'"); {
	case path == "":
		return ""
	case i.Line > 0:
		return fmt.Sprintf("On `%s`, line %d:\n\n", path, i.Line)
	default:
		return fmt.Sprintf("On `%s`:\n\n", path)
	}
}
