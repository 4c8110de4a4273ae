package channel_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"hash"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-github/v79/github"
	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentplatform/agentplatform/pkg/channel"
)

func mac(h func() hash.Hash, secret, signed string) string {
	m := hmac.New(h, []byte(secret))
	m.Write([]byte(signed))
	return hex.EncodeToString(m.Sum(nil))
}

// signed is a request as its provider signs it, after which things were done to it.
type signed struct {
	secret string // that it is checked with
	header http.Header
	body   []byte
	now    time.Time
}

func (s signed) verified(t require.TestingT, provider string) bool {
	c, ok := channel.Of(provider)
	require.True(t, ok)
	err := c.Verify(channel.Inbound{Header: s.header.Get, Body: s.body, Now: s.now}, s.secret)
	if err != nil {
		require.Equal(t, channel.ErrUnverified, err, "there is one error")
	}
	return err == nil
}

var bytesOf = rapid.SliceOfN(rapid.Byte(), 0, 200)

// damage draws one of several signatures, of which the first is right, or makes something of it.
func damage(t *rapid.T, all ...string) string {
	s := rapid.SampledFrom(append(all, all[0], all[0], all[0])).Draw(t, "signature")
	switch rapid.SampledFrom([]string{"", "", "", "upper", "flip", "short", "long", "space", "none"}).Draw(t, "damage") {
	case "upper":
		return strings.ToUpper(s)
	case "flip":
		b := []byte(s)
		i := rapid.IntRange(0, len(b)-1).Draw(t, "at")
		b[i] ^= 1 << rapid.IntRange(0, 6).Draw(t, "bit")
		return string(b)
	case "short":
		return s[:rapid.IntRange(0, len(s)-1).Draw(t, "length")]
	case "long":
		return s + rapid.SampledFrom([]string{"0", "00", "\n", "=", "\x00"}).Draw(t, "tail")
	case "space":
		return " " + s
	case "none":
		return ""
	}
	return s
}

// secrets draws the secret that is signed with, and the one that is checked with.
func secrets(t *rapid.T) (with, against string) {
	with = rapid.SampledFrom([]string{"8f742231b10e8888abcd99yyyzzz85a5", "k", "", "It's a Secret to Everybody"}).Draw(t, "secret")
	against = rapid.SampledFrom([]string{with, with, with, with, "", with + "x"}).Draw(t, "against")
	return with, against
}

func slackRequest(t *rapid.T) signed {
	with, against := secrets(t)
	body := bytesOf.Draw(t, "body")
	s := signed{secret: against, header: http.Header{}, body: body, now: time.Now()}
	// Not near the border: the oracle has a clock of its own. TestSlackVerifyAtTheBorder stands on it.
	off := rapid.SampledFrom([]int{0, 0, 0, 0, -1, 1, 200, -200, 290, -290, 310, -310, 3600, -86400}).Draw(t, "off")
	at := strconv.FormatInt(s.now.Unix()+int64(off), 10)
	at = rapid.SampledFrom([]string{at, at, at, at, at, at, "+" + at, "0" + at, " " + at, at + ".0", "-" + at, "", "x", "0x" + at, at + "000", "99999999999999999999"}).Draw(t, "at")
	base := "v0:" + at + ":" + string(body)
	right := mac(sha256.New, with, base)
	given := damage(t, "v0="+right, right, "v1="+right, "sha256="+right, "v0="+mac(sha1.New, with, base), "v0="+mac(sha256.New, with, string(body)), "v0=v0="+right)
	s.header.Set("X-Slack-Signature", given)
	s.header.Set("X-Slack-Request-Timestamp", at)
	if rapid.IntRange(0, 9).Draw(t, "change") == 0 {
		s.body = append(bytes.Clone(body), '\n')
	}
	return s
}

func (s signed) slackSays() bool {
	v, err := slack.NewSecretsVerifier(s.header, s.secret)
	if err != nil {
		return false
	}
	_, _ = v.Write(s.body)
	return v.Ensure() == nil
}

// What Slack's signatures are slack-go says, but that it takes a time in any form that strconv.ParseInt reads.
func TestSlackVerifyAgreesWithSlackGo(t *testing.T) {
	digits := regexp.MustCompile(`^[1-9][0-9]*$`)
	said := map[[2]bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		for range 100 {
			s := slackRequest(t)
			theirs := s.slackSays()
			ours := s.verified(t, "slack")
			if ours != (theirs && digits.MatchString(s.header.Get("X-Slack-Request-Timestamp"))) {
				t.Fatalf("ours %v, theirs %v: %q %q", ours, theirs, s.header, s.body)
			}
			said[[2]bool{ours, theirs}]++
		}
	})
	require.Greater(t, said[[2]bool{true, true}], 150)
	require.Greater(t, said[[2]bool{false, false}], 150)
	require.Positive(t, said[[2]bool{false, true}], "a time with a plus sign or a zero before it")
	require.Zero(t, said[[2]bool{true, false}])
}

// Time stands still here, for the oracle too.
func TestSlackVerifyAtTheBorder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for off, want := range map[time.Duration]bool{-301: false, -300: true, -299: true, 0: true, 299: true, 300: true, 301: false} {
			at := strconv.FormatInt(time.Now().Add(off*time.Second).Unix(), 10)
			s := signed{secret: "secret", header: http.Header{}, body: []byte("{}"), now: time.Now()}
			s.header.Set("X-Slack-Signature", "v0="+mac(sha256.New, "secret", "v0:"+at+":{}"))
			s.header.Set("X-Slack-Request-Timestamp", at)
			require.Equal(t, want, s.verified(t, "slack"), "%d s", off)
			require.Equal(t, want, s.slackSays(), "%d s", off)
		}
	})
}

// The example of Slack's documentation.
func TestSlackVerifyExample(t *testing.T) {
	s := signed{secret: "8f742231b10e8888abcd99yyyzzz85a5", header: http.Header{}, now: time.Unix(1531420618, 0), body: []byte("token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow" +
		"&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com" +
		"%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c")}
	s.header.Set("X-Slack-Signature", "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503")
	s.header.Set("X-Slack-Request-Timestamp", "1531420618")
	require.True(t, s.verified(t, "slack"))
	s.now = s.now.Add(24 * time.Hour)
	require.False(t, s.verified(t, "slack"), "a replay")
}

func githubRequest(t *rapid.T) signed {
	with, against := secrets(t)
	body := bytesOf.Draw(t, "body")
	s := signed{secret: against, header: http.Header{"Content-Type": {"application/json"}}, body: body}
	right, old := mac(sha256.New, with, string(body)), mac(sha1.New, with, string(body))
	given := damage(t, "sha256="+right, right, "sha1="+old, "sha256="+old, "sha512="+mac(sha512.New, with, string(body)), "SHA256="+right, "sha256=sha256="+right)
	if given != "" {
		s.header.Set("X-Hub-Signature-256", given)
	}
	if rapid.Bool().Draw(t, "old") {
		s.header.Set("X-Hub-Signature", "sha1="+old)
	}
	if rapid.IntRange(0, 9).Draw(t, "change") == 0 {
		s.body = append(bytes.Clone(body), '\n')
	}
	return s
}

// What GitHub's signatures are go-github says, but that it takes no secret for none to be needed, and other hashes than SHA-256.
func TestGitHubVerifyAgreesWithGoGitHub(t *testing.T) {
	said := map[[2]bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		for range 100 {
			s := githubRequest(t)
			r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(s.body))
			r.Header = s.header
			_, err := github.ValidatePayload(r, []byte(s.secret))
			ours, theirs := s.verified(t, "github"), err == nil
			strict := s.secret != "" && strings.HasPrefix(s.header.Get("X-Hub-Signature-256"), "sha256=")
			if ours != (theirs && strict) {
				t.Fatalf("ours %v, theirs %v: %q %q", ours, theirs, s.header, s.body)
			}
			said[[2]bool{ours, theirs}]++
		}
	})
	require.Greater(t, said[[2]bool{true, true}], 150)
	require.Greater(t, said[[2]bool{false, false}], 150)
	require.Positive(t, said[[2]bool{false, true}], "SHA-1, SHA-512, or no secret")
	require.Zero(t, said[[2]bool{true, false}])
}

// The example of GitHub's documentation.
func TestGitHubVerifyExample(t *testing.T) {
	s := signed{secret: "It's a Secret to Everybody", header: http.Header{}, body: []byte("Hello, World!")}
	s.header.Set("X-Hub-Signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17")
	require.True(t, s.verified(t, "github"))
	s.body = []byte("Hello, World")
	require.False(t, s.verified(t, "github"))
}

func TestGenericVerify(t *testing.T) {
	const at = "1700000000"
	right := mac(sha256.New, "a secret of some length", at+`.{"message":"Hello"}`)
	for name, c := range map[string]struct {
		signature, at, body, secret string
		off                         time.Duration
		want                        bool
	}{
		"right":               {want: true},
		"five minutes late":   {off: 5 * time.Minute, want: true},
		"five minutes early":  {off: -5 * time.Minute, want: true},
		"later":               {off: 5*time.Minute + 1},
		"earlier":             {off: -5*time.Minute - 1},
		"no prefix":           {signature: right},
		"another prefix":      {signature: "sha1=" + right},
		"none":                {signature: " "},
		"short":               {signature: "sha256=" + right[:62]},
		"not hexadecimal":     {signature: "sha256=" + right[:62] + "zz"},
		"body alone":          {signature: "sha256=" + mac(sha256.New, "a secret of some length", `{"message":"Hello"}`)},
		"as Slack does":       {signature: "sha256=" + mac(sha256.New, "a secret of some length", "v0:"+at+`:{"message":"Hello"}`)},
		"the dot elsewhere":   {at: "170000000", body: `0.{"message":"Hello"}`},
		"another time":        {at: "1700000001"},
		"a time with a plus":  {at: "+1700000000", signature: "sha256=" + mac(sha256.New, "a secret of some length", "+"+at+`.{"message":"Hello"}`)},
		"a time in milli":     {at: "1700000000000", signature: "sha256=" + mac(sha256.New, "a secret of some length", at+`000.{"message":"Hello"}`)},
		"another body":        {body: `{"message":"hello"}`},
		"another secret":      {secret: "a secret of some lengtH"},
		"no secret":           {secret: "none"},
		"signed with nothing": {secret: "none", signature: "sha256=" + mac(sha256.New, "", at+`.{"message":"Hello"}`)},
	} {
		s := signed{secret: "a secret of some length", header: http.Header{}, body: []byte(`{"message":"Hello"}`), now: time.Unix(1_700_000_000, 0).Add(c.off)}
		s.header.Set("X-Signature-256", "sha256="+right)
		s.header.Set("X-Signature-Timestamp", at)
		if c.signature != "" {
			s.header.Set("X-Signature-256", strings.TrimSpace(c.signature))
		}
		if c.at != "" {
			s.header.Set("X-Signature-Timestamp", c.at)
		}
		if c.body != "" {
			s.body = []byte(c.body)
		}
		if c.secret != "" {
			s.secret = strings.TrimPrefix(c.secret, "none")
		}
		require.Equal(t, c.want, s.verified(t, "generic"), name)
	}
}
