package compliance_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/functions/compliance"
	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/fault"
)

func TestComplianceChain(t *testing.T) {
	c := newConsole(t)
	var hashes []string
	for range 12 {
		hashes = append(hashes, c.log.Append(audit.Event{TenantID: c.acme.TenantID})[0].Hash)
		c.log.Append(audit.Event{TenantID: c.globex.TenantID})
	}
	walk := func(args fields) []float64 {
		var positions []float64
		prev := args["eventHash"]
		for _, e := range must[[]fields](c, "compliance-chain", compliance.ComplianceChain, args) {
			require.Equal(t, prev, e["eventHash"])
			require.Equal(t, c.acme.TenantID, e["tenantId"])
			prev = e["prevHash"]
			positions = append(positions, e["chainPosition"].(float64))
		}
		return positions
	}
	require.Equal(t, []float64{12, 11, 10, 9, 8, 7, 6, 5, 4, 3}, walk(fields{"eventHash": hashes[11]}))
	require.Equal(t, []float64{12, 11}, walk(fields{"eventHash": hashes[11], "limit": 2}))
	require.Equal(t, []float64{3, 2, 1}, walk(fields{"eventHash": hashes[2]}), "to GENESIS")

	_, refused := ask[[]fields](c, "compliance-chain", compliance.ComplianceChain, fields{"eventHash": strings.Repeat("0", 64)})
	require.Equal(t, fault.Missing("event"), refused)
	for _, limit := range []int{0, 11, -1} {
		_, refused := ask[[]fields](c, "compliance-chain", compliance.ComplianceChain, fields{"eventHash": hashes[0], "limit": limit})
		require.Equal(t, fault.ValidationError, refused.Type)
	}
}
