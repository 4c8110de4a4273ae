package channel

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/text"
)

// only refuses what another provider's configuration has.
func (c Config) only(provider string, members ...string) error {
	raw, err := json.Marshal(c)
	if err != nil {
		return err
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(raw, &given); err != nil {
		return err
	}
	for _, member := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(members, member) {
			return fault.Invalid("config.%s is not for provider %s", member, provider)
		}
	}
	return nil
}

// checkAPI brings apiUrl into one form; the provider's own is none.
func (c *Config) checkAPI(own string) error {
	c.APIURL = strings.TrimRight(c.APIURL, "/")
	if c.APIURL == own {
		c.APIURL = ""
	}
	if strings.Contains(c.APIURL, "?") {
		return fault.Invalid("config.apiUrl must not hold a query")
	}
	return checkURL("apiUrl", c.APIURL)
}

// checkURL takes where answers may be sent; "" is none.
func checkURL(member, s string) error {
	if s == "" {
		return nil
	}
	return text.CheckURL("config."+member, s)
}

// api is the address of the API.
func api(given, own string) string {
	if given = strings.TrimRight(given, "/"); given != "" {
		return given
	}
	return own
}

var slackIDs = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`)

func (slack) check(c *Config) error {
	if err := c.only("slack", "apiUrl", "botUserId", "teamId", "enterpriseId"); err != nil {
		return err
	}
	for member, id := range map[string]string{"botUserId": c.BotUserID, "teamId": c.TeamID, "enterpriseId": c.EnterpriseID} {
		if id != "" && !slackIDs.MatchString(id) {
			return fault.Invalid("config.%s must be an id of Slack's, or left out: it is learnt with the token", member)
		}
	}
	return c.checkAPI(slackAPI)
}

var (
	githubNames  = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?$`)
	githubLogins = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?(?:\[bot\])?$`)

	associations = []string{"OWNER", "MEMBER", "COLLABORATOR", "CONTRIBUTOR", "FIRST_TIME_CONTRIBUTOR", "FIRST_TIMER", "NONE"}
)

func (github) check(c *Config) error {
	if err := c.only("github", "apiUrl", "mention", "allow", "login"); err != nil {
		return err
	}
	switch {
	case c.Mention == "":
		return fault.Invalid("config.mention is required: what people write behind @ to ask the agent")
	case !githubNames.MatchString(c.Mention):
		return fault.Invalid("config.mention must be a name as GitHub has them, of letters, digits and hyphens, without @")
	case c.Login != "" && !githubLogins.MatchString(c.Login):
		return fault.Invalid("config.login must be a name of GitHub's, or left out: it is learnt with the token")
	case c.Allow == nil:
		c.Allow = associations[:3:3]
	case len(c.Allow) == 0:
		return fault.Invalid("config.allow must name whoever may ask")
	}
	for i, a := range c.Allow {
		if !slices.Contains(associations, a) || slices.Contains(c.Allow[:i], a) {
			return fault.Invalid("config.allow must hold, once each, some of %s", strings.Join(associations, ", "))
		}
	}
	return c.checkAPI(githubAPI)
}

func (generic) check(c *Config) error {
	if err := c.only("generic", "replyUrl"); err != nil {
		return err
	}
	return checkURL("replyUrl", c.ReplyURL)
}
