package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// words is a text of that many words that are all different.
func words(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("word%d", i)
	}
	return strings.Join(all, " ")
}

// TestThePageMissesNothing: the page's scripts show every reply as it is written, letter by letter and without a gap, though their socket is cut again
// and again.
func TestThePageMissesNothing(t *testing.T) {
	t.Parallel()
	p := sharedPlatform(t)
	alice := p.as(t, "alice")
	thread, said := alice.open(t), words(150)
	var drafts []string
	var cuts int
	var reply json.RawMessage
	code := node(t, p, "page.mjs", func(line json.RawMessage) {
		switch {
		case member(line, "error") != "":
			t.Error(string(line))
		case member(line, "cut") != "":
			cuts++
		case member(line, "reply") != "":
			reply = line
		default:
			drafts = append(drafts, member(line, "draft.text"))
		}
	}, "API_URL="+p.Outputs.APIURL, "EMAIL=alice@acme.test", "PASSWORD="+p.Password, "THREAD_ID="+thread, "BODY=/slow 30\n/say "+said, "CUTS=8", "TIMEOUT_MS=40000")
	require.Zero(t, code)
	require.Equal(t, said, member(reply, "reply.body"))
	require.Equal(t, []string{"idle", ""}, []string{member(reply, "status"), member(reply, "draft.text")})
	require.Equal(t, 8, cuts)
	require.Greater(t, len(drafts), 8)
	for i, draft := range drafts {
		require.True(t, strings.HasPrefix(said, draft), draft)
		require.True(t, i == 0 || strings.HasPrefix(draft, drafts[i-1]), "what was shown stays")
	}
}
