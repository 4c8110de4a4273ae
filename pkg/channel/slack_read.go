package channel

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

// slackEnvelope is what is read of a delivery.
type slackEnvelope struct {
	Type          string `json:"type"`
	Challenge     string `json:"challenge"`
	TeamID        string `json:"team_id"`         // where it happened
	ContextTeamID string `json:"context_team_id"` // through which the app hears of it
	EnterpriseID  string `json:"enterprise_id"`
	AppID         string `json:"api_app_id"`
	EventID       string `json:"event_id"`
	Minute        int64  `json:"minute_rate_limited"`
	External      bool   `json:"is_ext_shared_channel"` // with another organization
	Installed     []struct {
		TeamID       string `json:"team_id"`
		EnterpriseID string `json:"enterprise_id"`
		UserID       string `json:"user_id"`
		IsBot        bool   `json:"is_bot"`
		Organization bool   `json:"is_enterprise_install"`
	} `json:"authorizations"` // one of those that hear of it
	Event json.RawMessage `json:"event"`
}

// slackMessage is what is read of a message, which a mention is, too.
type slackMessage struct {
	Type        string          `json:"type"`
	ChannelType string          `json:"channel_type"`
	Channel     string          `json:"channel"`
	User        string          `json:"user"`
	Text        string          `json:"text"`
	TS          string          `json:"ts"`
	ThreadTS    string          `json:"thread_ts"`
	Team        string          `json:"team"`
	UserTeam    string          `json:"user_team"`
	SourceTeam  string          `json:"source_team"`
	BotID       string          `json:"bot_id"`
	AppID       string          `json:"app_id"`
	BotProfile  json.RawMessage `json:"bot_profile"`
	Edited      json.RawMessage `json:"edited"`
	Hidden      bool            `json:"hidden"`
	Files       []struct {
		Name string `json:"name"`
	} `json:"files"`
	Profile struct {
		Display string `json:"display_name"`
		Real    string `json:"real_name"`
		Name    string `json:"name"`
	} `json:"user_profile"`
}

// slackAddress is where a conversation is.
type slackAddress struct {
	Channel  string `json:"channel"`
	ThreadTS string `json:"threadTs"`
}

const maxChallenge = 4096

func (s slack) Read(in Inbound, c Config) (Event, error) {
	var envelope slackEnvelope
	if err := json.Unmarshal(in.Body, &envelope); err != nil {
		return Event{}, fault.Invalid("the body is no delivery of Slack's")
	}
	e := Event{ID: envelope.EventID, Kind: word(envelope.Type)}
	switch envelope.Type {
	case "url_verification":
		if n := len(envelope.Challenge); n == 0 || n > maxChallenge {
			return e, fault.Invalid("the body has no challenge")
		}
		answer, err := json.Marshal(map[string]string{"challenge": envelope.Challenge})
		e.Answer = &Answer{answer}
		return e, err
	case "app_rate_limited":
		e.ID = fmt.Sprintf("%s-%d", e.Kind, envelope.Minute)
		if _, _, ours := envelope.home(c); ours {
			e.Held = "Slack has held events back: there were more than it delivers to an app"
		}
		return e, nil
	case "event_callback":
		if !deliveryIDs.MatchString(e.ID) {
			return Event{Kind: e.Kind}, fault.Invalid("the body has no event_id")
		}
		return s.event(e, envelope, c)
	}
	return Event{Kind: e.Kind}, fault.Invalid("the body is of no type that is known")
}

// event reads what has happened. Of what is no message only the name is read: members of one name hold other things elsewhere.
func (s slack) event(e Event, envelope slackEnvelope, c Config) (Event, error) {
	var what struct {
		Type    string `json:"type"`
		Subtype string `json:"subtype"`
	}
	if err := json.Unmarshal(envelope.Event, &what); err != nil || what.Type == "" {
		return e, fault.Invalid("the body has no event")
	}
	if e.Kind = word(what.Type); what.Subtype != "" {
		e.Kind += "." + word(what.Subtype)
	}
	if what.Type != "app_mention" && what.Type != "message" || !slices.Contains([]string{"", "file_share", "thread_broadcast", "me_message"}, what.Subtype) {
		return e, nil
	}
	var m slackMessage
	if err := json.Unmarshal(envelope.Event, &m); err != nil {
		return e, fault.Invalid("the event is no message of Slack's")
	}
	team, bot, member := envelope.home(c)
	if !member || m.byApp(envelope.AppID, bot) || m.stranger(envelope.External, team) || m.Hidden || there(m.Edited) {
		return e, nil
	}
	var err error
	e.Said, err = m.said(team, bot)
	return e, err
}

var slackTimes = regexp.MustCompile(`^[0-9]{1,20}\.[0-9]{1,10}$`)

// said is the message, or nothing if it is nobody's business.
func (m slackMessage) said(team, bot string) (*Said, error) {
	root := m.ThreadTS
	if root == "" {
		root = m.TS
	}
	for name, id := range map[string]string{"team": team, "channel": m.Channel, "user": m.User} {
		if !slackIDs.MatchString(id) {
			return nil, fault.Invalid("the event has no %s", name)
		}
	}
	if !slackTimes.MatchString(m.TS) || !slackTimes.MatchString(root) {
		return nil, fault.Invalid("the event has no ts")
	}
	body, mentioned := slackMarkdown(m.Text, bot)
	opens := m.Type == "app_mention" || mentioned || m.direct()
	if !opens && root == m.TS {
		return nil, nil
	}
	address, err := json.Marshal(slackAddress{m.Channel, root})
	if err != nil {
		return nil, err
	}
	names := make([]string, len(m.Files))
	for i, f := range m.Files {
		names[i] = f.Name
	}
	body = Cut(attached(Cut(body), names))
	called := title(body)
	sender := Sender{ID: m.User, Name: name(m.Profile.Display, m.Profile.Real, m.Profile.Name)}
	if !m.direct() {
		body = Cut(speaker(sender) + body)
	}
	return &Said{
		Key:        strings.Join([]string{team, m.Channel, root}, "/"),
		MessageKey: strings.Join([]string{team, m.Channel, m.TS}, "/"),
		Opens:      opens,
		Title:      called,
		Body:       body,
		Sender:     sender,
		Address:    address,
		Metadata:   map[string]any{"slack": map[string]any{"team": team, "channel": m.Channel, "threadTs": root}},
	}, nil
}

// direct reports whether it is said to the app alone: then everybody knows who speaks.
func (m slackMessage) direct() bool { return m.ChannelType == "im" || m.ChannelType == "app_home" }
