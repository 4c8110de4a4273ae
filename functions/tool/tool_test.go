package tool_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	functions "github.com/agentplatform/agentplatform/functions/tool"
	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/toolserver"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type args = map[string]any

func add(t *testing.T, p *handlertest.Platform, by tenant.Claims, input args) (toolserver.Server, *fault.Error) {
	t.Helper()
	return handlertest.Call[toolserver.Server](t, p, "add-tool-server", functions.AddToolServer, by, args{"input": input})
}

func remove(t *testing.T, p *handlertest.Platform, by tenant.Claims, id string) (toolserver.Server, *fault.Error) {
	t.Helper()
	return handlertest.Call[toolserver.Server](t, p, "remove-tool-server", functions.RemoveToolServer, by, args{"id": id})
}

func TestToolServersAreRecorded(t *testing.T) {
	p := handlertest.New(t)
	w := p.DB.World(t, "acme")
	admin := handlertest.Claims(w, tenant.Admin)
	s, err := add(t, p, admin, args{"name": "tracker", "url": "https://192.0.2.1/sse?tenant=7&api_key=hunter2", "scopes": []string{"read:issues", "write:issues"}})
	require.Nil(t, err)
	require.True(t, ident.Valid(s.ID))
	require.Equal(t, "https://192.0.2.1/sse?tenant=7&api_key=hunter2", s.URL)
	_, err = remove(t, p, handlertest.Claims(w, tenant.Member), s.ID)
	require.Equal(t, fault.Forbidden, err.Type)
	removed, err := remove(t, p, admin, s.ID)
	require.Nil(t, err)
	require.Equal(t, s, removed)
	_, err = remove(t, p, admin, s.ID)
	require.Equal(t, fault.Missing("tool server"), err)
	_, err = remove(t, p, admin, "no id")
	require.Equal(t, fault.Missing("tool server"), err)

	recorded := p.Recorded(t)
	require.Len(t, recorded, 2)
	require.Equal(t, audit.ToolServerAdded, recorded[0].Type)
	require.Equal(t, audit.ToolServerRemoved, recorded[1].Type)
	for _, e := range recorded {
		url := e.Payload["url"].(string)
		require.Contains(t, url, "https://192.0.2.1/sse?tenant=7")
		require.NotContains(t, url, "hunter2", "what gives access is not for the log")
		delete(e.Payload, "url")
		require.Equal(t, []string{w.TenantID, w.UserID, "tool_server", s.ID}, []string{e.TenantID, e.Actor, e.ResourceType, e.ResourceID})
	}
	require.Equal(t, args{"mcpId": s.ID, "scopes": []any{"read:issues", "write:issues"}}, recorded[0].Payload)
	require.Equal(t, args{"mcpId": s.ID}, recorded[1].Payload)
}

func TestToolServersThatAreRefused(t *testing.T) {
	p := handlertest.New(t)
	w := p.DB.World(t, "acme")
	owner := handlertest.Claims(w, tenant.Owner)
	_, err := add(t, p, handlertest.Claims(w, tenant.Member), args{"name": "a", "url": "https://192.0.2.1"})
	require.Equal(t, fault.Forbidden, err.Type)
	for _, url := range []string{"https://192.0.2.1", "https://192.0.2.1:8443/a?b=c", "http://localhost:3001/mcp", "http://127.0.0.1:3001", "http://[::1]:3001/"} {
		_, err := add(t, p, owner, args{"name": ident.New(), "url": url})
		require.Nil(t, err, url)
	}
	for _, url := range []string{"", "192.0.2.1", "//192.0.2.1", "https://", "https:///a", "https:a", "http://192.0.2.1", "http://10.0.0.1", "http://localhost.example.test",
		"ftp://192.0.2.1", "file:///etc/passwd", "https://user@192.0.2.1", "https://user:pass@192.0.2.1", "https://192.0.2.1/#a",
		"https://192.0.2.1/\x00", "https://192.0.2.1/" + strings.Repeat("x", 2048)} {
		_, err := add(t, p, owner, args{"name": "a", "url": url})
		require.NotNil(t, err, url)
		require.Equal(t, fault.ValidationError, err.Type, url)
	}
	for name, input := range map[string]args{
		"no name":       {"name": ""},
		"name of space": {"name": "a b"},
		"long name":     {"name": strings.Repeat("x", 41)},
		"line end":      {"name": "a\n"},
		"empty scope":   {"name": "a", "scopes": []string{""}},
		"scope of two":  {"name": "a", "scopes": []string{"read write"}},
		"many scopes":   {"name": "a", "scopes": slices.Repeat([]string{"s"}, 51)},
	} {
		input["url"] = "https://192.0.2.1"
		_, err := add(t, p, owner, input)
		require.NotNil(t, err, name)
		require.Equal(t, fault.ValidationError, err.Type, name)
	}
	_, err = add(t, p, owner, args{"name": "tracker", "url": "https://192.0.2.1"})
	require.Nil(t, err)
	_, err = add(t, p, owner, args{"name": "tracker", "url": "https://192.0.2.2"})
	require.Equal(t, fault.Invalid("a tool server has the name tracker already"), err)
	_, err = add(t, p, handlertest.Claims(p.DB.World(t, "globex"), tenant.Owner), args{"name": "tracker", "url": "https://192.0.2.1"})
	require.Nil(t, err, "names are the tenant's own")
}

func TestListToolServers(t *testing.T) {
	p := handlertest.New(t)
	w, globex := p.DB.World(t, "acme"), p.DB.World(t, "globex")
	for _, name := range []string{"b", "B", "a-1", "a_1", "z"} {
		_, err := add(t, p, handlertest.Claims(w, tenant.Owner), args{"name": name, "url": "https://192.0.2.1"})
		require.Nil(t, err)
	}
	theirs, err := add(t, p, handlertest.Claims(globex, tenant.Owner), args{"name": "theirs", "url": "https://192.0.2.1"})
	require.Nil(t, err)
	_, err = remove(t, p, handlertest.Claims(w, tenant.Owner), theirs.ID)
	require.Equal(t, fault.Missing("tool server"), err)
	var names []string
	var token *string
	for {
		list, err := handlertest.Call[page.Page[toolserver.Server]](t, p, "list-tool-servers", functions.ListToolServers, handlertest.Claims(w, tenant.Member), args{"limit": 2, "nextToken": token})
		require.Nil(t, err)
		for _, s := range list.Items {
			require.Equal(t, []string{}, s.Scopes)
			names = append(names, s.Name)
		}
		if token = list.NextToken; token == nil {
			break
		}
	}
	require.Equal(t, []string{"B", "a-1", "a_1", "b", "z"}, names)
}

func TestWhatIsNotRecordedIsNotDone(t *testing.T) {
	p := handlertest.New(t)
	w := p.DB.World(t, "acme")
	owner := handlertest.Claims(w, tenant.Owner)
	s, err := add(t, p, owner, args{"name": "tracker", "url": "https://192.0.2.1"})
	require.Nil(t, err)
	p.BreakOutbox(t)
	_, err = add(t, p, owner, args{"name": "other", "url": "https://192.0.2.1"})
	require.Equal(t, fault.InternalError, err.Type)
	_, err = remove(t, p, owner, s.ID)
	require.Equal(t, fault.InternalError, err.Type)
	list, err := handlertest.Call[page.Page[toolserver.Server]](t, p, "list-tool-servers", functions.ListToolServers, owner, args{})
	require.Nil(t, err)
	require.Equal(t, []toolserver.Server{s}, list.Items)
}
