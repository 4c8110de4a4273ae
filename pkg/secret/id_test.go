package secret_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/secret"
)

func TestOf(t *testing.T) {
	const tenant = "01890af2-91b1-7c3a-8d5e-0123456789ab"
	require.Equal(t, tenant+"/connections/linear-2/oauth_2", of(t, tenant, "connections", "linear-2", "oauth_2").String())
	require.Len(t, of(t, tenant, strings.Repeat("a", secret.MaxID-37)).String(), secret.MaxID)
	require.Equal(t, of(t, tenant, "a"), of(t, tenant, "a"))
	require.Empty(t, secret.ID{}.String())

	for _, other := range []string{"", "..", "tenant", strings.ToUpper(tenant), tenant + "/" + ident.New(), " " + tenant, tenant[:35], tenant[:35] + "\n"} {
		_, err := secret.Of(other, "connections")
		require.EqualError(t, err, "id of a secret: the tenant is not a UUID in lower case", other)
	}
	for _, w := range []string{
		"", ".", "..", "../x", "a/b", "/", "a.b", ".a", "-a", "_a", "A", "Linear", "a b", "a\n", "a\x00", `a\b`, "é", "а", "a%2fb", "a:1", "*", "{{ssm:x}}", "~",
	} {
		for i, words := range [][]string{{w}, {"a", w}, {"a", "b", w}} {
			id, err := secret.Of(tenant, words...)
			require.ErrorContains(t, err, "id of a secret: word "+string(rune('1'+i))+" is not of a-z", w)
			require.Equal(t, secret.ID{}, id)
		}
	}
	for _, words := range [][]string{{}, strings.Split("a/b/c/d/e/f/g/h/i", "/"), {strings.Repeat("a", secret.MaxID-36)}, {strings.Repeat("a", 1<<20)}} {
		_, err := secret.Of(tenant, words...)
		require.ErrorContains(t, err, "id of a secret: ")
		require.Less(t, len(err.Error()), 100, "it does not repeat what was given")
	}
}
