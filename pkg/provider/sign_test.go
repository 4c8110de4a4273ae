package provider_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/provider"
)

func TestMAC(t *testing.T) {
	for _, c := range []struct{ secret, text, mac string }{
		{"Jefe", "what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},        // RFC 4231, test case 2
		{"It's a Secret to Everybody", "Hello, World!", "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"}, // GitHub's documentation
	} {
		mac := provider.MAC(c.secret, []byte(c.text))
		require.Equal(t, c.mac, hex.EncodeToString(mac))
		require.Equal(t, mac, provider.MAC(c.secret, []byte(c.text[:5]), nil, []byte(c.text[5:])))
		require.True(t, provider.SameHex(c.mac, mac))
		for _, wrong := range []string{"", c.mac[:62], c.mac + "00", "0" + c.mac, c.mac[:63], "zz" + c.mac[2:], strings.Repeat("0", 64), " " + c.mac} {
			require.False(t, provider.SameHex(wrong, mac), wrong)
		}
	}
}
