package trail

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
)

func TestFilterCheck(t *testing.T) {
	text := func(s string) *string { return &s }
	moment := func(s string) *ident.Time {
		v, err := time.Parse(time.RFC3339Nano, s)
		require.NoError(t, err)
		return &ident.Time{Time: v}
	}
	good, err := Filter{TenantID: text("018F2F3E-7B1A-7C3D-8E4F-123456789ABC"), From: moment("2026-01-01T00:00:00.0000019Z"), To: moment("2026-01-02T00:00:00Z")}.Check()
	require.NoError(t, err)
	require.Equal(t, map[string]any{"tenantId": "018f2f3e-7b1a-7c3d-8e4f-123456789abc", "from": "2026-01-01T00:00:00.000001Z", "to": "2026-01-02T00:00:00.000000Z"}, good.Map())
	canonical, err := good.Canonical()
	require.NoError(t, err)
	require.Equal(t, `{"from":"2026-01-01T00:00:00.000001Z","tenantId":"018f2f3e-7b1a-7c3d-8e4f-123456789abc","to":"2026-01-02T00:00:00.000000Z"}`, string(canonical))

	for message, bad := range map[string]Filter{
		"tenantId must be a UUID":               {TenantID: text("acme")},
		"actor must be UTF-8 text without NUL":  {Actor: text("a\x00")},
		"eventType is longer than 4096 bytes":   {EventType: text(strings.Repeat("x", 4097))},
		"from must be before to":                {From: moment("2026-01-02T00:00:00Z"), To: moment("2026-01-02T00:00:00Z")},
		"to must lie in the years 1000 to 9999": {To: moment("0000-01-01T00:00:00Z")},
	} {
		_, err := bad.Check()
		require.Equal(t, fault.Invalid("%s", message), err)
	}

	now := *moment("2026-03-08T00:00:00Z")
	require.Equal(t, "2026-03-01T00:00:00.000000Z", Filter{}.Since(now).From.String())
	require.Equal(t, "2025-12-26T00:00:00.000000Z", Filter{To: good.To}.Since(now).From.String())
	require.Equal(t, good.From, good.Since(now).From)
}
