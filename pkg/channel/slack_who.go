package channel

import "encoding/json"

// home is the workspace that the app is in and its user there, and whether that is the integration's: all installations of an app sign with the same secret. Where
// the app is installed in a whole organization, the organization is.
func (e slackEnvelope) home(c Config) (team, bot string, ours bool) {
	organization, enterprise := false, ""
	if len(e.Installed) > 0 {
		team, organization, enterprise = e.Installed[0].TeamID, e.Installed[0].Organization, e.Installed[0].EnterpriseID
		if e.Installed[0].IsBot {
			bot = e.Installed[0].UserID
		}
	}
	for _, next := range []string{e.ContextTeamID, e.TeamID, e.EnterpriseID} {
		if team == "" {
			team = next
		}
	}
	if enterprise == "" {
		enterprise = e.EnterpriseID
	}
	ours = c.TeamID == "" || c.TeamID == team
	if organization && (c.EnterpriseID != "" || c.TeamID != "") {
		ours = c.EnterpriseID != "" && c.EnterpriseID == enterprise
	}
	if c.TeamID != "" {
		team = c.TeamID
	}
	if c.BotUserID != "" {
		bot = c.BotUserID
	}
	return team, bot, ours
}

// byApp reports whether no person has said it: any app, so that two never talk to each other for ever.
func (m slackMessage) byApp(ours, bot string) bool {
	return m.BotID != "" || there(m.BotProfile) || m.User == "" || m.User == "USLACKBOT" || m.User == bot || m.AppID != "" && m.AppID == ours
}

// stranger reports whether somebody of another organization has said it.
func (m slackMessage) stranger(external bool, home string) bool {
	from := m.UserTeam
	for _, next := range []string{m.SourceTeam, m.Team} {
		if from == "" {
			from = next
		}
	}
	return external && from != home
}

// there reports whether a member of a JSON object was given.
func there(member json.RawMessage) bool { return len(member) > 0 && string(member) != "null" }
