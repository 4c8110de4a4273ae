package channel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/agentplatform/agentplatform/pkg/provider"
)

const maxGitHubReply = 65_536 // characters of a comment

// GitHubIdentity is whose a token is. Errors are *provider.Error.
func GitHubIdentity(ctx context.Context, client *http.Client, apiURL, token string) (login string, err error) {
	var who struct {
		Login string `json:"login"`
	}
	if err := githubCall(ctx, client, token, http.MethodGet, api(apiURL, githubAPI)+"/user", nil, &who); err != nil {
		return "", err
	}
	if !githubLogins.MatchString(who.Login) {
		return "", &provider.Error{Kind: provider.Unknown, Reason: "the answer of the server cannot be understood"}
	}
	return who.Login, nil
}

// githubCall calls the API, in the version that this is written for.
func githubCall(ctx context.Context, client *http.Client, token, method, at string, in, out any) error {
	r, err := provider.Request(ctx, method, at, in)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Accept", "application/vnd.github+json")
	r.Header.Set("X-GitHub-Api-Version", "2022-11-28")
	_, err = provider.Do(ctx, client, r, out)
	return slower(err)
}

// slower tells GitHub's second limit, on what makes others busy, which has status 403 and need not have a header. It wants a minute at the least.
func slower(err error) error {
	var e *provider.Error
	if !errors.As(err, &e) {
		return err
	}
	if e.Status == http.StatusForbidden && (strings.Contains(e.Reason, "secondary rate limit") || strings.Contains(e.Reason, "abuse detection")) {
		e.Kind = provider.Limited
	}
	if e.Kind == provider.Limited {
		e.After = max(e.After, time.Minute)
	}
	return e
}

// quiet is what an agent says, so that nobody is notified of it by name: what it has read may have told it to.
func quiet(body string) string {
	said, _ := prose(body)
	var b strings.Builder
	rest := 0
	for i, c := range said {
		if c != '@' || before(said[:i]) || i+1 == len(said) || !inWord(rune(said[i+1])) {
			continue
		}
		b.WriteString(body[rest:i+1] + zeroWidth)
		rest = i + 1
	}
	b.WriteString(body[rest:])
	return b.String()
}

func githubAt(to json.RawMessage) (a githubAddress, err error) {
	if json.Unmarshal(to, &a) != nil || !repositoryName(a.Repository) || a.Number <= 0 || a.Comment < 0 {
		return a, errNowhere
	}
	return a, nil
}

func (github) Post(ctx context.Context, o Outside, to json.RawMessage, r Reply) (string, error) {
	address, err := githubAt(to)
	if err != nil {
		return "", err
	}
	at := fmt.Sprintf("%s/repos/%s/issues/%d/comments", api(o.Config.APIURL, githubAPI), address.Repository, address.Number)
	if address.Comment > 0 {
		at = fmt.Sprintf("%s/repos/%s/pulls/%d/comments/%d/replies", api(o.Config.APIURL, githubAPI), address.Repository, address.Number, address.Comment)
	}
	r.Body = quiet(r.Body)
	var posted struct {
		ID int64 `json:"id"`
	}
	if err := githubCall(ctx, o.Client, o.Secrets.Token, http.MethodPost, at, map[string]string{"body": fit(r, maxGitHubReply, "\n\n"+marker(r.ID))}, &posted); err != nil {
		return "", err
	}
	if posted.ID <= 0 {
		return "", &provider.Error{Kind: provider.Unknown, Reason: "the answer of the server cannot be understood"}
	}
	return strconv.FormatInt(posted.ID, 10), nil
}

const githubPage = 100

// Find reads what was said in the conversation since.
func (github) Find(ctx context.Context, o Outside, to json.RawMessage, replyID string, since time.Time) (string, bool, error) {
	address, err := githubAt(to)
	if err != nil {
		return "", false, err
	}
	if o.Config.Login == "" {
		return "", false, ErrNoLook // anybody may write a marker
	}
	of := "issues"
	query := url.Values{"since": {since.UTC().Format(time.RFC3339)}, "per_page": {strconv.Itoa(githubPage)}}
	if address.Comment > 0 {
		of = "pulls"
	}
	for page := 1; page <= maxPages; page++ {
		query.Set("page", strconv.Itoa(page))
		var comments []githubItem
		at := fmt.Sprintf("%s/repos/%s/%s/%d/comments?%s", api(o.Config.APIURL, githubAPI), address.Repository, of, address.Number, query.Encode())
		if err := githubCall(ctx, o.Client, o.Secrets.Token, http.MethodGet, at, nil, &comments); err != nil {
			return "", false, noLook(err)
		}
		for _, c := range comments {
			if strings.EqualFold(c.User.Login, o.Config.Login) && strings.HasSuffix(strings.TrimSpace(c.Body), marker(replyID)) {
				return strconv.FormatInt(c.ID, 10), true, nil
			}
		}
		if len(comments) < githubPage {
			return "", false, nil
		}
	}
	return "", false, ErrNoLook
}
