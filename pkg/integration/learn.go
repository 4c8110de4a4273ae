package integration

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/agentplatform/agentplatform/pkg/channel"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/provider"
)

// askTime bounds the question who a token is.
const askTime = 10 * time.Second

// asks reports whether a provider is asked who the token is, so that the platform's own messages are known there.
func (p Provider) asks() bool { return p == Slack || p == GitHub }

// learn asks the provider who the token is, and keeps the answer in the configuration, whatever was given there.
func (s *Integrations) learn(ctx context.Context, i *Integration, known Secret) error {
	if !i.Provider.asks() {
		return nil
	}
	c, err := channel.ParseConfig(json.RawMessage(i.Config))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	switch i.Provider {
	case Slack:
		var bot channel.SlackBot
		bot, err = channel.SlackIdentity(ctx, s.over, c.APIURL, known.Token)
		c.BotUserID, c.TeamID, c.EnterpriseID = bot.UserID, bot.TeamID, bot.EnterpriseID
	case GitHub:
		c.Login, err = channel.GitHubIdentity(ctx, s.over, c.APIURL, known.Token)
	}
	if err != nil {
		return explain(err)
	}
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	stored, err := channel.Check(string(i.Provider), b) // what it says of itself is a stranger's word, too
	i.Config = string(stored)
	return err
}

// explain tells whoever gave a token why it cannot be used.
func explain(err error) error {
	var e *provider.Error
	switch {
	case !errors.As(err, &e):
		return err
	case e.Kind == provider.Denied || e.Kind == provider.Refused || e.Kind == provider.Missing:
		return fault.Invalid("secret.token cannot be used: %s", e.Reason)
	}
	return fault.Invalid("the provider could not be asked whose secret.token is, try again later: %s", e.Reason)
}
