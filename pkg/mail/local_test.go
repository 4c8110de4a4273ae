package mail_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/local/outbox"
)

func TestContractLocal(t *testing.T) {
	o, err := outbox.Open(outbox.Config{Dir: t.TempDir()})
	require.NoError(t, err)
	testContract(t, adapter{Carrier: o, own: true, sent: func(t *testing.T) (all []sent) {
		entries, more, err := o.List("", outbox.MaxPage)
		require.NoError(t, err)
		require.False(t, more)
		for _, e := range entries {
			raw, err := o.Read(e.ID)
			require.NoError(t, err)
			all = append(all, sent{parse(t, raw).Get("Message-Id"), raw})
		}
		return all
	}})
}
