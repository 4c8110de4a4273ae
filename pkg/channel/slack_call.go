package channel

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/agentplatform/agentplatform/pkg/provider"
)

// SlackBot is who a bot's token is, and where.
type SlackBot struct {
	UserID       string `json:"user_id"`
	TeamID       string `json:"team_id"`
	EnterpriseID string `json:"enterprise_id"` // "": the workspace is in no organization
}

// SlackIdentity asks who a bot's token is. Errors are *provider.Error.
func SlackIdentity(ctx context.Context, client *http.Client, apiURL, token string) (SlackBot, error) {
	var who struct {
		SlackBot
		BotID string `json:"bot_id"`
	}
	r, err := provider.Request(ctx, http.MethodPost, api(apiURL, slackAPI)+"/auth.test", struct{}{})
	if err != nil {
		return SlackBot{}, err
	}
	if err := slackCall(ctx, client, r, token, &who); err != nil {
		return SlackBot{}, err
	}
	switch {
	case !slackIDs.MatchString(who.UserID) || !slackIDs.MatchString(who.TeamID) || who.EnterpriseID != "" && !slackIDs.MatchString(who.EnterpriseID):
		return SlackBot{}, &provider.Error{Kind: provider.Unknown, Reason: "the answer of the server cannot be understood"}
	case who.BotID == "":
		return SlackBot{}, &provider.Error{Kind: provider.Refused, Reason: "the token is a person's: it must be the app's bot token"}
	}
	return who.SlackBot, nil
}

// slackCall asks a method of Slack's. Its errors come with HTTP status 200.
func slackCall(ctx context.Context, client *http.Client, r *http.Request, token string, out any) error {
	r.Header.Set("Authorization", "Bearer "+token)
	var raw json.RawMessage
	h, err := provider.Do(ctx, client, r, &raw)
	if err != nil {
		return err
	}
	var said struct {
		OK     bool   `json:"ok"`
		Error  string `json:"error"`
		Needed string `json:"needed"`
	}
	if err := json.Unmarshal(raw, &said); err != nil || !said.OK && said.Error == "" {
		return &provider.Error{Kind: provider.Unknown, Reason: "the answer of the server cannot be understood", Status: http.StatusOK}
	}
	if !said.OK {
		return slackRefusal(said.Error, said.Needed, h)
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return &provider.Error{Kind: provider.Unknown, Reason: "the answer of the server cannot be understood", Status: http.StatusOK}
	}
	return nil
}

// slackForbidden are the words for a token that is good, but not for this: what others say with HTTP status 403.
var slackForbidden = []string{"missing_scope", "not_allowed_token_type", "no_permission", "ekm_access_denied", "team_access_not_granted", "access_denied"}

// What Slack's words mean, but for those after which nothing was done and nothing ever will be: all others.
var slackWords = map[provider.Kind][]string{
	provider.Denied:  append([]string{"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "two_factor_setup_required"}, slackForbidden...),
	provider.Missing: {"channel_not_found", "thread_not_found", "user_not_found", "team_not_found", "is_archived", "not_in_channel"},
	provider.Limited: {"ratelimited", "rate_limited", "message_limit_exceeded"},
	provider.Away:    {"service_unavailable", "team_added_to_org", "org_login_required"},
	provider.Unknown: {"fatal_error", "internal_error", "request_timeout"}, // "it is possible that some aspect of the operation succeeded"
}

var slackWord = regexp.MustCompile(`^[a-z][a-z0-9_:,.]{0,200}$`)

func slackRefusal(word, needed string, h http.Header) error {
	e := &provider.Error{Kind: provider.Refused, Reason: "Slack refuses it", Status: http.StatusOK}
	for kind, words := range slackWords {
		if slices.Contains(words, word) {
			e.Kind = kind
		}
	}
	if slices.Contains(slackForbidden, word) {
		e.Status = http.StatusForbidden
	}
	if slackWord.MatchString(word) {
		e.Reason += ": " + word
	}
	if word == "missing_scope" && slackWord.MatchString(needed) {
		e.Reason += ", the app needs " + needed
	}
	if wait, err := strconv.ParseUint(h.Get("Retry-After"), 10, 16); err == nil && e.Again() {
		e.After = time.Duration(wait) * time.Second
	}
	return e
}

// slackQuery is a call of a method that is asked by a query.
func slackQuery(ctx context.Context, apiURL, method string, query url.Values) (*http.Request, error) {
	return provider.Request(ctx, http.MethodGet, api(apiURL, slackAPI)+"/"+method+"?"+query.Encode(), nil)
}
