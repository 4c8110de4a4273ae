package integration

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/agentplatform/agentplatform/pkg/channel"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/text"
)

// Settings are what a caller says of an integration. An update leaves what it does not give as it is.
type Settings struct {
	Name      text.Patch[string]      `json:"name,omitzero"`
	AgentID   text.Patch[string]      `json:"agentId,omitzero"`
	Config    text.Patch[string]      `json:"config,omitzero"` // a JSON object, whole; null: an empty one
	Enabled   text.Patch[bool]        `json:"enabled,omitzero"`
	RateLimit text.Patch[int]         `json:"rateLimit,omitzero"`
	Secret    text.Patch[SecretGiven] `json:"secret,omitzero"`
}

// New is what a caller makes.
type New struct {
	Provider Provider `json:"provider"`
	Settings
}

// SecretGiven is what a caller gives of a secret; it is never given back. What is left out stays as it is.
type SecretGiven struct {
	Signing *string `json:"signing"`
	Token   *string `json:"token"`
}

// apply changes the integration by the settings, and checks all but what only the database knows.
func (n Settings) apply(i *Integration) error {
	if err := given("name", n.Name, &i.Name); err != nil {
		return err
	}
	if err := given("enabled", n.Enabled, &i.Enabled); err != nil {
		return err
	}
	if err := given("rateLimit", n.RateLimit, &i.RateLimit); err != nil {
		return err
	}
	n.AgentID.Apply(&i.AgentID)
	if n.Config.Set {
		i.Config = "{}"
		if n.Config.Value != nil {
			i.Config = *n.Config.Value
		}
	}
	if err := text.Check("name", i.Name, 1, 200); err != nil {
		return err
	}
	if i.RateLimit < 1 || i.RateLimit > MaxRateLimit {
		return fault.Invalid("rateLimit must be from 1 to %d deliveries a minute", MaxRateLimit)
	}
	if err := i.checkAgent(); err != nil {
		return err
	}
	return i.checkConfig()
}

// given writes a setting that was given; null is none.
func given[T any](field string, p text.Patch[T], to *T) error {
	if !p.Set {
		return nil
	}
	if p.Value == nil {
		return fault.Invalid("%s must not be null", field)
	}
	*to = *p.Value
	return nil
}

func (i *Integration) checkAgent() error {
	switch {
	case i.Provider.Tracker() && i.AgentID != nil:
		return fault.Invalid("agentId is not for provider %s: its webhooks name the agent", i.Provider)
	case i.Provider.Tracker():
		return nil
	case i.AgentID == nil:
		return fault.Invalid("agentId is required for provider %s", i.Provider)
	case !ident.Valid(*i.AgentID):
		return errNoAgent
	}
	i.AgentID = new(strings.ToLower(*i.AgentID)) // as the database spells it
	return nil
}

var errNoAgent = fault.Invalid("agentId names no agent of the tenant")

const maxConfig = 16 << 10

// checkConfig brings the configuration into its stored form.
func (i *Integration) checkConfig() error {
	if err := text.Check("config", i.Config, 1, maxConfig); err != nil {
		return err
	}
	if err := text.CheckJSON("config", i.Config); err != nil {
		return err
	}
	switch {
	case i.Provider == Email:
		return i.checkAddress()
	case i.Provider.Tracker():
		return i.checkClient()
	case i.Provider.Channel():
		stored, err := channel.Check(string(i.Provider), json.RawMessage(i.Config))
		i.Config = string(stored)
		return err
	}
	return fault.Invalid("provider must be slack, github, email, generic, linear, jira or asana")
}

// The parts of a secret that a provider has, and that are therefore asked for.
func (p Provider) signs() bool { return p == Slack || p == GitHub || p == Generic }
func (p Provider) token() bool { return p == Slack || p == GitHub || p.Tracker() }

// with is the secret with what was given written over it, if it is what the provider needs.
func (p Provider) with(s Secret, g SecretGiven) (Secret, error) {
	for _, part := range []struct {
		field string
		has   bool
		min   int
		given *string
		to    *string
	}{
		{"secret.signing", p.signs(), minSigning, g.Signing, &s.Signing},
		{"secret.token", p.token(), 1, g.Token, &s.Token},
	} {
		switch {
		case !part.has && part.given != nil:
			return s, fault.Invalid("%s is not for provider %s", part.field, p)
		case part.has && part.given == nil && *part.to == "":
			return s, fault.Invalid("%s is required for provider %s", part.field, p)
		case part.given == nil:
		case len(*part.given) < part.min || len(*part.given) > maxSecret || !values.MatchString(*part.given):
			return s, fault.Invalid("%s must be %d to %d printable ASCII characters, the first and the last no space", part.field, part.min, maxSecret)
		default:
			*part.to = *part.given
		}
	}
	return s, nil
}

const (
	minSigning = 16 // bytes: who could guess it could say anything
	maxSecret  = 2048
)

var values = regexp.MustCompile(`^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$`)
