package e2e

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/ident"
)

// tab is a browser's tab with the platform's own page, in which somebody connects to a tracker.
type tab struct {
	*platform
	tracker, person string // the integration's name, and who the user is there
}

// pageShown is what connect_page.mjs prints.
type pageShown struct {
	Address, Notice, Refused, Session string
	Back                              string // where the tracker has sent the browser
	Failed, Door, Waits               bool   // the notice is of a failure; the door is shown; it says that it waits for who has come back
	Asked                             int    // how often the page asked to complete a connection
	Trackers                          []string
}

// opens opens the page, in a tab that keeps a session, and does there what a user does; email is who signs in.
func (b tab) opens(t *testing.T, address, session, does, email string) (shown pageShown) {
	t.Helper()
	var said string
	code := node(t, b.platform, "connect_page.mjs", func(line json.RawMessage) {
		said += string(line)
		require.NoError(t, json.Unmarshal(line, &shown), string(line))
	}, "OPEN="+address, "SESSION="+session, "DO="+does, "EMAIL="+email, "PASSWORD="+b.Password, "TRACKER="+b.tracker, "PERSON="+b.person)
	require.Zero(t, code, said)
	if given, err := url.Parse(address); err == nil && given.RawQuery != "" {
		for _, name := range []string{"state", "code"} {
			if value := given.Query().Get(name); value != "" {
				require.NotContains(t, said, value, "the page keeps the %s nowhere", name)
			}
		}
	}
	require.Equal(t, b.Outputs.APIURL+"/", shown.Address)
	return shown
}

// connections are the ones of the person at the tracker: status and account.
func (b tab) connections(t *testing.T, name string) (all []string) {
	t.Helper()
	var page struct {
		Items []struct{ ProviderUserID, AccountName, Status string }
	}
	a := b.as(t, name).query(t, `{ listConnections(limit: 100) { items { providerUserId accountName status } } }`, nil)
	require.NoError(t, json.Unmarshal([]byte(a.get("listConnections")), &page))
	for _, c := range page.Items {
		if c.ProviderUserID == b.person {
			all = append(all, c.Status+" "+c.AccountName)
		}
	}
	return all
}

// newTab makes the integration whose users come back to the page.
func newTab(t *testing.T) (b tab, remove func()) {
	t.Helper()
	p, api := sharedPlatform(t), newLinear(t)
	api.authority.RedirectURIs = []string{p.Outputs.APIURL + "/"}
	config, err := json.Marshal(vars{"clientId": api.authority.ClientID, "redirectUris": api.authority.RedirectURIs, "apiUrl": api.URL, "authUrl": api.URL})
	require.NoError(t, err)
	b = tab{p, "Linear " + api.issue, ident.New()}
	id := p.as(t, "alice").query(t, `mutation ($input: CreateIntegrationInput!) { createIntegration(input: $input) { id } }`, vars{"input": vars{"name": b.tracker, "provider": "linear",
		"config": string(config), "secret": vars{"token": api.authority.ClientSecret}}}).get("createIntegration.id")
	return b, func() {
		p.as(t, "alice").query(t, `mutation ($id: ID!) { deleteIntegration(id: $id) { id } }`, vars{"id": id})
	}
}

const usedState = "the state is not one that you have begun a connection with in the last ten minutes, or it was used: connect again"

// TestThePageConnects: from the page's button to the tracker, back, and connected; in the page, at its door, and once more after the session has ended. What
// the tracker has sent is in no address, in nothing that the tab keeps, and in no log.
func TestThePageConnects(t *testing.T) {
	t.Parallel()
	b, remove := newTab(t)
	home, max := b.Outputs.APIURL+"/", "max@acme.test"
	connected := "Linear is connected as " + b.person + " (Acme)."

	first := b.opens(t, home, "{}", "sign-in connect", max)
	require.Contains(t, first.Trackers, b.tracker+" · Linear")
	require.Contains(t, first.Back, home+"?code=")
	require.Empty(t, b.connections(t, "max"))
	made := b.opens(t, first.Back, first.Session, "notice list", "")
	require.Equal(t, []any{connected, false, 1}, []any{made.Notice, made.Failed, made.Asked})
	require.Equal(t, first.Session, made.Session)
	require.Contains(t, made.Trackers, "Connected as "+b.person+" (Acme)")
	require.Equal(t, []string{"active Acme"}, b.connections(t, "max"))
	again := b.opens(t, first.Back, first.Session, "notice", "")
	require.Equal(t, []any{usedState, true, 1}, []any{again.Notice, again.Failed, again.Asked}, "a state is good once")

	second := b.opens(t, home, first.Session, "connect", "")
	door := b.opens(t, second.Back, "{}", "", "")
	require.Equal(t, []any{true, true, 0}, []any{door.Door, door.Waits, door.Asked}, "it waits for who has come back")
	other := b.opens(t, second.Back, "{}", "sign-in notice list", "alice@acme.test")
	require.Equal(t, []any{usedState, true}, []any{other.Notice, other.Failed}, "who has not begun it is not connected")
	require.NotContains(t, other.Trackers, "Connected as "+b.person+" (Acme)", "an owner's own ones, though she may see all")
	entered := b.opens(t, second.Back, "{}", "sign-in notice", max)
	require.Equal(t, []any{connected, false, 1}, []any{entered.Notice, entered.Failed, entered.Asked})

	third := b.opens(t, home, first.Session, "connect", "")
	expired, err := json.Marshal(vars{"agentplatform.tokens": `{"id":"x.` + base64.RawURLEncoding.EncodeToString([]byte(`{"exp":1}`)) + `.x","refresh":"x"}`})
	require.NoError(t, err)
	ended := b.opens(t, third.Back, string(expired), "sign-in notice", max)
	require.Equal(t, []any{connected, false, 1}, []any{ended.Notice, ended.Failed, ended.Asked})
	left := b.opens(t, home, first.Session, "disconnect sign-out", "")
	require.True(t, left.Door)
	require.Empty(t, left.Trackers, "nothing of it stays for the next one to sign in")
	require.Equal(t, "{}", left.Session)
	require.Empty(t, b.connections(t, "alice"))
	for _, back := range []string{first.Back, second.Back, third.Back} {
		sent, err := url.Parse(back)
		require.NoError(t, err)
		for _, values := range sent.Query() {
			require.NotContains(t, b.output.String(), values[0])
		}
	}
	remove()
}

// TestThePageIsToldNo: what else trackers and strangers send people back with.
func TestThePageIsToldNo(t *testing.T) {
	t.Parallel()
	b := tab{platform: sharedPlatform(t)}
	home := b.Outputs.APIURL + "/"
	session := b.opens(t, home, "{}", "sign-in", "max@acme.test").Session
	for query, want := range map[string]string{
		"error=access_denied&state=begun-4711":                                "The connection was not allowed at the tracker.",
		"error=invalid_scope&error_description=Call+0900&state=begun-4711":    "The tracker has made no connection: invalid_scope.",
		"error=" + url.QueryEscape("<b>Call 0900</b>") + "&state=begun-4711":  "The tracker has made no connection: it does not say why.",
		"error=access_denied&state=begun-4711&code=":                          "The connection was not allowed at the tracker.",
		"code=given-4711&state=" + url.QueryEscape(`never"begun`):             usedState,
		"code=given-4711%0A&state=begun-4711":                                 "code must be the code that the provider has sent back",
		"utm=1&code=given-4711&state=begun-4711&code=given-0815&iss=anywhere": usedState,
	} {
		shown := b.opens(t, home+"?"+query, session, "notice", "")
		require.Equal(t, want, shown.Notice, query)
		require.True(t, shown.Failed, query)
		require.Equal(t, session, shown.Session)
	}
	for _, query := range []string{"state=begun-4711", "code=given-4711", "error=access_denied", "state=&code=given-4711"} {
		shown := b.opens(t, home+"?"+query, "{}", "", "")
		require.Equal(t, []any{true, false, 0}, []any{shown.Door, shown.Waits, shown.Asked}, query)
	}
}
