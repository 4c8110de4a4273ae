package tool_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	functions "github.com/agentplatform/agentplatform/functions/tool"
	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/toolserver"
)

// serve starts an MCP server that wants the token t0ken, and has one tool.
func serve(t *testing.T) (url string, tool func(description string)) {
	s := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	tool = func(description string) {
		s.AddTool(&sdk.Tool{Name: "get_issue", Description: description, InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				return &sdk.CallToolResult{}, nil
			})
	}
	tool("Gets an issue.")
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer t0ken" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, tool
}

func TestFromRegistrationToApproval(t *testing.T) {
	p := handlertest.New(t)
	w := p.DB.World(t, "acme")
	admin, member, foreign := handlertest.Claims(w, tenant.Admin), handlertest.Claims(w, tenant.Member), handlertest.Claims(p.DB.World(t, "globex"), tenant.Owner)
	url, tool := serve(t)
	tools := func(id string) []toolserver.Tool {
		t.Helper()
		all, err := handlertest.Call[[][]toolserver.Tool](t, p, "tool-server-tools", functions.ToolServerTools, member, args{}, args{"id": id})
		require.Nil(t, err)
		return all[0]
	}
	update := func(by tenant.Claims, id string, input args) (toolserver.Server, *fault.Error) {
		return handlertest.Call[toolserver.Server](t, p, "update-tool-server", functions.UpdateToolServer, by, args{"id": id, "input": input})
	}
	refresh := func(by tenant.Claims, id string) (toolserver.Server, *fault.Error) {
		return handlertest.Call[toolserver.Server](t, p, "refresh-tool-server", functions.RefreshToolServer, by, args{"id": id})
	}
	approve := func(by tenant.Claims, id string, seen ...args) (toolserver.Server, *fault.Error) {
		return handlertest.Call[toolserver.Server](t, p, "approve-server-tools", functions.ApproveServerTools, by, args{"id": id, "tools": seen})
	}

	s, err := add(t, p, admin, args{"name": "tracker", "url": url})
	require.Nil(t, err)
	require.Equal(t, "the server refuses the credentials, or wants some (HTTP 401)", *s.Error)
	require.Empty(t, tools(s.ID))
	s, err = update(admin, s.ID, args{"auth": args{"type": "BEARER", "token": "t0ken"}, "timeoutSeconds": 90})
	require.Nil(t, err)
	require.Nil(t, s.Error)
	require.Equal(t, 90, s.Timeout)
	shown, _ := json.Marshal(s)
	require.NotContains(t, string(shown), "t0ken")
	require.Equal(t, toolserver.ToolApproved, tools(s.ID)[0].Status, "the first list is approved with the server")
	require.Equal(t, w.UserID, *tools(s.ID)[0].ApprovedBy)

	tool("Gets an issue, and more.")
	_, err = refresh(admin, s.ID)
	require.Nil(t, err)
	changed := tools(s.ID)[0]
	require.Equal(t, toolserver.ToolChanged, changed.Status)
	seen := args{"name": changed.Name, "hash": changed.Hash}
	for who, by := range map[string]tenant.Claims{"member": member, "foreign": foreign} {
		_, added := add(t, p, member, args{"name": "b", "url": url})
		_, updated := update(by, s.ID, args{})
		_, refreshed := refresh(by, s.ID)
		_, approved := approve(by, s.ID, seen)
		want := []fault.Type{fault.Forbidden, fault.Forbidden, fault.Forbidden, fault.Forbidden}
		if who == "foreign" {
			want = []fault.Type{fault.Forbidden, fault.NotFound, fault.NotFound, fault.NotFound}
		}
		require.Equal(t, want, []fault.Type{added.Type, updated.Type, refreshed.Type, approved.Type})
	}
	_, err = approve(admin, s.ID, seen, args{"name": changed.Name, "hash": "0"})
	require.Equal(t, fault.Invalid("the server lists no tool tracker__get_issue with this hash: look at it again"), err)
	_, err = approve(admin, s.ID, seen)
	require.Nil(t, err)
	require.Equal(t, toolserver.ToolApproved, tools(s.ID)[0].Status)
	_, err = refresh(admin, "no id")
	require.Equal(t, fault.Missing("tool server"), err)

	// To the audit log another URL is another server.
	other, _ := serve(t)
	_, err = update(admin, s.ID, args{"url": other})
	require.Equal(t, fault.ValidationError, err.Type, "what was given for the one is not sent to the other")
	_, err = update(admin, s.ID, args{"url": other, "auth": args{"type": "BEARER", "token": "t0ken"}})
	require.Nil(t, err)
	_, err = remove(t, p, admin, s.ID)
	require.Nil(t, err)
	require.Empty(t, tools(s.ID))
	var types []audit.Type
	for _, e := range p.Recorded(t) {
		types = append(types, e.Type)
	}
	require.Equal(t, []audit.Type{audit.ToolServerAdded, audit.ToolServerRemoved, audit.ToolServerAdded, audit.ToolServerRemoved}, types)
}
