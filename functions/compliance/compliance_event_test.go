package compliance_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/functions/compliance"
	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
)

func TestComplianceEvent(t *testing.T) {
	c := newConsole(t).withBuckets()
	e := c.log.Append(audit.Event{TenantID: c.acme.TenantID}, large(c.acme.TenantID, ago(0)))
	get := func(id string) (fields, *fault.Error) {
		return ask[fields](c, "compliance-event", compliance.ComplianceEvent, fields{"eventId": id})
	}
	small, refused := get(strings.ToUpper(e[0].EventID))
	require.Nil(t, refused)
	require.Equal(t, string(e[0].Payload), small["payload"])
	require.Nil(t, small["payloadUrl"])

	big, refused := get(e[1].EventID)
	require.Nil(t, refused)
	require.Nil(t, big["payload"])
	require.EqualValues(t, len(e[1].Payload), big["payloadBytes"])
	preview := big["payloadPreview"].(string)
	require.True(t, strings.HasPrefix(string(e[1].Payload), preview))
	require.True(t, utf8.ValidString(preview))
	require.LessOrEqual(t, len(preview), 1024)
	require.Greater(t, len(preview), 1024-utf8.UTFMax)
	status, body, disposition := fetch(t, big["payloadUrl"].(string))
	require.Equal(t, http.StatusOK, status, body)
	require.Equal(t, string(e[1].Payload), body)
	require.Contains(t, disposition, "compliance-event-"+e[1].EventID+"-payload.json")
	require.Contains(t, big["payloadUrl"], "X-Amz-Expires=900")

	for _, id := range []string{ident.New(), "", "x"} {
		_, refused = get(id)
		require.Equal(t, fault.Missing("event"), refused)
	}
}

// fetch gets a link as a browser does.
func fetch(t *testing.T, url string) (status int, body, disposition string) {
	t.Helper()
	res, err := http.Get(url)
	require.NoError(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(text), res.Header.Get("Content-Disposition")
}
