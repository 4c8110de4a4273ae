package model

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestResponseOfAllParts(t *testing.T) {
	s := speak(t, BedrockConfig{}, func(w http.ResponseWriter, _ *http.Request) {
		events(w,
			"messageStart", `{"role":"assistant","p":"abc"}`,
			"contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"Let "}}`,
			"contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"me."}}`,
			"contentBlockStop", `{"contentBlockIndex":0}`,
			"somethingNew", `{"contentBlockIndex":9}`,
			"contentBlockDelta", `{"contentBlockIndex":1,"delta":{"reasoningContent":{"text":"hm"}}}`,
			"contentBlockStart", `{"contentBlockIndex":2,"start":{"toolUse":{"toolUseId":"t1","name":"look"}}}`,
			"contentBlockDelta", `{"contentBlockIndex":2,"delta":{"toolUse":{"input":"{\"a\": 1,"}}}`,
			"contentBlockStart", `{"contentBlockIndex":3,"start":{"toolUse":{"toolUseId":"t2","name":"plain"}}}`,
			"contentBlockDelta", `{"contentBlockIndex":2,"delta":{"toolUse":{"input":" \"b\": 12345678901234567890}"}}}`,
			"messageStop", `{"stopReason":"tool_use"}`,
			"metadata", usageEvent)
	})
	r, err := s.client.Converse(t.Context(), hello, nil)
	require.NoError(t, err)
	require.Equal(t, Response{
		Blocks: []Block{
			{Text: "Let me."},
			{ToolUse: &ToolUse{ID: "t1", Name: "look", Input: json.RawMessage(`{"a":1,"b":12345678901234567890}`)}},
			{ToolUse: &ToolUse{ID: "t2", Name: "plain", Input: json.RawMessage(`{}`)}},
		},
		StopReason: StopToolUse,
		Usage:      Usage{InputTokens: 10, OutputTokens: 2, CacheReadTokens: 3, CacheWriteTokens: 4},
	}, r)
	require.Equal(t, 19, r.Usage.Total())
	require.Len(t, r.ToolUses(), 2)

	stored, err := json.Marshal(r)
	require.NoError(t, err)
	var replayed Response
	require.NoError(t, json.Unmarshal(stored, &replayed))
	require.Equal(t, r, replayed)
}

func TestIncompleteAnswersAreErrors(t *testing.T) {
	const text, stop = `{"contentBlockIndex":0,"delta":{"text":"Half"}}`, `{"stopReason":"end_turn"}`
	const tool = `{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"t1","name":"look"}}}`
	const part = `{"contentBlockIndex":0,"delta":{"toolUse":{"input":"{\"a\":"}}}`
	const list = `{"contentBlockIndex":0,"delta":{"toolUse":{"input":"[1]"}}}`
	for name, c := range map[string]struct {
		events []string
		reason Reason
		retry  bool
	}{
		"nothing":            {nil, Broken, true},
		"no stop":            {[]string{"contentBlockDelta", text, "metadata", usageEvent}, Broken, true},
		"no usage":           {[]string{"contentBlockDelta", text, "messageStop", stop}, Broken, true},
		"cut tool input":     {[]string{"contentBlockStart", tool, "contentBlockDelta", part, "messageStop", `{"stopReason":"tool_use"}`, "metadata", usageEvent}, Malformed, true},
		"tool input no obj":  {[]string{"contentBlockStart", tool, "contentBlockDelta", list, "messageStop", `{"stopReason":"tool_use"}`, "metadata", usageEvent}, Malformed, true},
		"malformed":          {[]string{"messageStop", `{"stopReason":"malformed_tool_use"}`, "metadata", usageEvent}, Malformed, true},
		"tool at the limit":  {[]string{"contentBlockStart", tool, "contentBlockDelta", part, "messageStop", `{"stopReason":"max_tokens"}`, "metadata", usageEvent}, Truncated, false},
		"event is not json":  {[]string{"contentBlockDelta", `{"contentBlock`}, Broken, true},
		"tool without an id": {[]string{"contentBlockStart", `{"contentBlockIndex":0,"start":{"toolUse":{"name":"x"}}}`, "messageStop", stop, "metadata", usageEvent}, Malformed, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := speak(t, BedrockConfig{}, func(w http.ResponseWriter, _ *http.Request) { events(w, c.events...) })
			_, err := s.client.Converse(t.Context(), hello, nil)
			e := reasonOf(t, err)
			require.Equal(t, c.reason, e.Reason)
			require.Equal(t, c.retry, e.Temporary())
		})
	}
}

func TestErrorsOfTheProvider(t *testing.T) {
	const secret = "arn:aws:iam::123456789012:role/operator"
	for _, c := range []struct {
		status int
		code   string
		reason Reason
		retry  bool
	}{
		{429, "ThrottlingException", Throttled, true},
		{400, "ServiceQuotaExceededException", Throttled, false},
		{503, "ServiceUnavailableException", Unavailable, true},
		{500, "InternalServerException", Unavailable, true},
		{429, "ModelNotReadyException", Unavailable, true},
		{424, "ModelErrorException", Unavailable, true},
		{408, "ModelTimeoutException", TimedOut, true},
		{400, "ValidationException", Invalid, false},
		{404, "ResourceNotFoundException", Missing, false},
		{403, "AccessDeniedException", Denied, false},
		{403, "UnrecognizedClientException", Denied, false},
		{403, "ExpiredTokenException", Denied, false},
		{429, "Whatever", Throttled, true},
		{502, "", Unavailable, true},
		{403, "", Denied, false},
		{404, "", Missing, false},
		{418, "", Invalid, false},
	} {
		t.Run(c.code, func(t *testing.T) {
			s := speak(t, BedrockConfig{}, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Amzn-Errortype", c.code+":http://internal.amazon.com/coral/")
				if c.code == "" {
					w.Header().Del("X-Amzn-Errortype")
				}
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(`{"message":"` + secret + ` may not"}`))
			})
			_, err := s.client.Converse(t.Context(), hello, nil)
			e := reasonOf(t, err)
			require.Equal(t, c.reason, e.Reason)
			require.Equal(t, c.retry, e.Temporary())
			require.NotContains(t, err.Error(), secret)
			require.ErrorContains(t, e.Unwrap(), secret, "the log has the cause")
		})
	}
	t.Run("html from a proxy", func(t *testing.T) {
		s := speak(t, BedrockConfig{}, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = w.Write([]byte("<html>bad gateway</html>"))
		})
		_, err := s.client.Converse(t.Context(), hello, nil)
		require.Equal(t, Unavailable, reasonOf(t, err).Reason)
	})
	t.Run("too long", func(t *testing.T) {
		s := speak(t, BedrockConfig{}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Amzn-Errortype", "ValidationException")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"message":"Input is too long for requested model."}`))
		})
		_, err := s.client.Converse(t.Context(), hello, nil)
		require.Equal(t, TooLong, reasonOf(t, err).Reason)
	})
}

func TestErrorsWithinTheStream(t *testing.T) {
	for code, want := range map[string]struct {
		reason Reason
		retry  bool
	}{
		"modelStreamErrorException":   {Broken, true},
		"throttlingException":         {Throttled, true},
		"serviceUnavailableException": {Unavailable, true},
		"internalServerException":     {Unavailable, true},
		"validationException":         {Invalid, false},
		"neverSeenException":          {Broken, true},
	} {
		t.Run(code, func(t *testing.T) {
			s := speak(t, BedrockConfig{}, func(w http.ResponseWriter, _ *http.Request) {
				events(w, "contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"Half"}}`)
				frame(w, "exception", ":exception-type", code, `{"message":"no"}`)
			})
			var seen words
			_, err := s.client.Converse(t.Context(), hello, &seen)
			e := reasonOf(t, err)
			require.Equal(t, want.reason, e.Reason)
			require.Equal(t, want.retry, e.Temporary())
			require.Equal(t, words{"Half"}, seen)
		})
	}
}

func TestSilenceIsATimeout(t *testing.T) {
	t.Run("in the answer", func(t *testing.T) {
		s := speak(t, BedrockConfig{StallWait: 20 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
			events(w, "messageStart", `{"role":"assistant"}`)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
		_, err := s.client.Converse(t.Context(), hello, nil)
		e := reasonOf(t, err)
		require.Equal(t, TimedOut, e.Reason)
		require.True(t, e.Temporary())
	})
	t.Run("before the answer", func(t *testing.T) {
		s := speak(t, BedrockConfig{HeaderWait: 20 * time.Millisecond}, func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		})
		_, err := s.client.Converse(t.Context(), hello, nil)
		e := reasonOf(t, err)
		require.Equal(t, TimedOut, e.Reason)
		require.True(t, e.Temporary())
	})
}

func TestNobodyAtTheEndpoint(t *testing.T) {
	client, err := NewBedrock(BedrockConfig{Region: "us-east-1", Endpoint: "http://127.0.0.1:1"})
	require.NoError(t, err)
	_, err = client.Converse(t.Context(), hello, nil)
	e := reasonOf(t, err)
	require.Equal(t, Unavailable, e.Reason)
	require.True(t, e.Temporary())
	require.NotContains(t, err.Error(), "127.0.0.1")
}

func TestConfigIsChecked(t *testing.T) {
	_, err := NewBedrock(BedrockConfig{Endpoint: "http://127.0.0.1:1"})
	require.ErrorContains(t, err, "region")
	_, err = NewBedrock(BedrockConfig{Region: "us-east-1"})
	require.ErrorContains(t, err, "credentials")
}

func TestABearerTokenOfTheEnvironmentStaysHere(t *testing.T) {
	t.Setenv("AWS_BEARER_TOKEN_BEDROCK", "real-secret")
	s := speak(t, BedrockConfig{}, func(w http.ResponseWriter, _ *http.Request) {
		events(w, "messageStop", `{"stopReason":"end_turn"}`, "metadata", usageEvent)
	})
	_, err := s.client.Converse(t.Context(), hello, nil)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(s.header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/"))
	require.Contains(t, s.header.Get("Authorization"), "/eu-central-1/bedrock/")
}

// words is a Stream that keeps the deltas.
type words []string

func (w *words) Text(delta string) { *w = append(*w, delta) }
func (w *words) Restart()          { *w = append(*w, "<restart>") }
