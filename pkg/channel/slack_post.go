package channel

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"

	"github.com/agentplatform/agentplatform/pkg/provider"
)

const (
	maxSlackReply = 12_000 // characters of markdown_text
	slackReply    = "agentplatform_reply"
	zeroWidth     = "\u200b"
)

// slackMetadata goes with a post. Any app of the workspace may read it: there is nothing in it but an id.
type slackMetadata struct {
	Type    string `json:"event_type"`
	Payload struct {
		ID string `json:"id"`
	} `json:"event_payload"`
}

type slackPost struct {
	Channel     string        `json:"channel"`
	ThreadTS    string        `json:"thread_ts"`
	Text        string        `json:"markdown_text"`
	Metadata    slackMetadata `json:"metadata"`
	UnfurlLinks bool          `json:"unfurl_links"` // false: Slack fetches no link that a model has written
	UnfurlMedia bool          `json:"unfurl_media"`
}

// slackAlarms are words that ring for people.
var slackAlarms = regexp.MustCompile(`<(?:!(?:channel|here|everyone|group|subteam)|@[UWB])|@(?:channel|here|everyone)\b`)

// calm is what an agent says, so that it alarms nobody: what it has read may have told it to.
func calm(body string) string {
	return slackAlarms.ReplaceAllStringFunc(body, func(s string) string { return s[:1] + zeroWidth + s[1:] })
}

func (slack) Post(ctx context.Context, o Outside, to json.RawMessage, r Reply) (string, error) {
	address, err := slackAt(to)
	if err != nil {
		return "", err
	}
	r.Body = calm(r.Body)
	post := slackPost{Channel: address.Channel, ThreadTS: address.ThreadTS, Text: fit(r, maxSlackReply, ""), Metadata: slackMetadata{Type: slackReply}}
	post.Metadata.Payload.ID = r.ID
	q, err := provider.Request(ctx, http.MethodPost, api(o.Config.APIURL, slackAPI)+"/chat.postMessage", post)
	if err != nil {
		return "", err
	}
	var posted struct {
		TS string `json:"ts"`
	}
	if err := slackCall(ctx, o.Client, q, o.Secrets.Token, &posted); err != nil {
		return "", err
	}
	if !slackTimes.MatchString(posted.TS) {
		return "", &provider.Error{Kind: provider.Unknown, Reason: "the answer of the server cannot be understood", Status: http.StatusOK}
	}
	return address.Channel + "/" + posted.TS, nil
}

func slackAt(to json.RawMessage) (a slackAddress, err error) {
	if json.Unmarshal(to, &a) != nil || a.Channel == "" || a.ThreadTS == "" {
		return a, errNowhere
	}
	return a, nil
}

// errNowhere: an address that Read has not made.
var errNowhere = &provider.Error{Kind: provider.Refused, Reason: "the address of the conversation cannot be read"}

const maxPages = 10 // that are read to find a reply

// slackReplies is a page of a thread.
type slackReplies struct {
	Messages []struct {
		User     string          `json:"user"`
		TS       string          `json:"ts"`
		Metadata json.RawMessage `json:"metadata"` // anybody's
	} `json:"messages"`
	Next struct {
		Cursor string `json:"next_cursor"`
	} `json:"response_metadata"`
}

// Find reads what was said in the thread since. It needs the scope channels:history, or that of the channel's kind.
func (slack) Find(ctx context.Context, o Outside, to json.RawMessage, replyID string, since time.Time) (string, bool, error) {
	address, err := slackAt(to)
	if err != nil {
		return "", false, err
	}
	if o.Config.BotUserID == "" {
		return "", false, ErrNoLook // anybody may write a reply's id
	}
	query := url.Values{
		"channel": {address.Channel}, "ts": {address.ThreadTS}, "limit": {"200"}, "inclusive": {"true"}, "include_all_metadata": {"true"},
		"oldest": {strconv.FormatInt(since.Unix(), 10) + ".000000"},
	}
	for range maxPages {
		q, err := slackQuery(ctx, o.Config.APIURL, "conversations.replies", query)
		if err != nil {
			return "", false, err
		}
		var page slackReplies
		if err := slackCall(ctx, o.Client, q, o.Secrets.Token, &page); err != nil {
			return "", false, noLook(err)
		}
		for _, m := range page.Messages {
			var said slackMetadata
			if m.User == o.Config.BotUserID && json.Unmarshal(m.Metadata, &said) == nil && said.Type == slackReply && said.Payload.ID == replyID {
				return address.Channel + "/" + m.TS, true, nil
			}
		}
		if page.Next.Cursor == "" {
			return "", false, nil
		}
		query.Set("cursor", page.Next.Cursor)
	}
	return "", false, ErrNoLook
}

// noLook is ErrNoLook of a credential that is good, but not for reading.
func noLook(err error) error {
	var e *provider.Error
	if errors.As(err, &e) && (e.Kind == provider.Denied && e.Status == http.StatusForbidden || e.Kind == provider.Refused) {
		return ErrNoLook
	}
	return err
}
