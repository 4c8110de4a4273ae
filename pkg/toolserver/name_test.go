package toolserver_test

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentplatform/agentplatform/pkg/toolserver"
)

var forModels = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func TestName(t *testing.T) {
	long := strings.Repeat("x", 40)
	for _, c := range [][3]string{
		{"tracker", "get_issue", "tracker__get_issue"},
		{"tracker", "_private", "tracker___private"},
		{"a_b", "c__d", "a_b__c__d"},
		{long, "short", long + "__short"},
		{long, strings.Repeat("y", 22), long + "__" + strings.Repeat("y", 22)},
		// shortened: the end is of the SHA-256 of the server's name for it
		{"tracker", "issues.get/all", "tracker__issues_get_all_0"},
		{"tracker", "suche größe", "tracker__suche_gr__e_0"},
		{"tracker", "…", "tracker___0"},
		{long, strings.Repeat("y", 23), long + "__yyyyyyyyy_0"},
		{"tracker", "looks_like_0123456789ab", "tracker__looks_like_0123456789ab_0"},
	} {
		got := toolserver.Name(c[0], c[1])
		require.Regexp(t, forModels, got)
		if beginning, shortened := strings.CutSuffix(c[2], "0"); shortened {
			sum := sha256.Sum256([]byte(c[1]))
			require.Equal(t, beginning+hex.EncodeToString(sum[:6]), got)
		} else {
			require.Equal(t, c[2], got)
		}
	}
}

// No two tools of a tenant have one name, whatever servers call them.
func TestNamesDiffer(t *testing.T) {
	server := rapid.StringMatching(`[A-Za-z0-9-]{1,3}(_[A-Za-z0-9-]{1,3}){0,2}`)
	tool := rapid.OneOf(rapid.StringMatching(`[A-Za-z0-9_-]{1,8}`), rapid.StringMatching(`[ab._/]{1,70}`), rapid.StringMatching(`a{20,60}_[0-9a-f]{12}`), rapid.StringN(1, 128, 128))
	rapid.Check(t, func(t *rapid.T) {
		s1, t1, s2, t2 := server.Draw(t, "s1"), tool.Draw(t, "t1"), server.Draw(t, "s2"), tool.Draw(t, "t2")
		if rapid.Bool().Draw(t, "same tool as offered") { // the name that the one is offered as, for another one's own
			t2 = strings.TrimPrefix(toolserver.Name(s1, t1), s2+"__")
		}
		n1, n2 := toolserver.Name(s1, t1), toolserver.Name(s2, t2)
		if !forModels.MatchString(n1) || !forModels.MatchString(n2) {
			t.Fatalf("%q %q", n1, n2)
		}
		if (n1 == n2) != (s1 == s2 && t1 == t2) {
			t.Fatalf("%q %q: %q, %q %q: %q", s1, t1, n1, s2, t2, n2)
		}
	})
}
