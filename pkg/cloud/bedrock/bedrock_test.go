package bedrock

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/model"
)

func TestResponseOfAllParts(t *testing.T) {
	s := speak(t, Config{}, func(w http.ResponseWriter, _ *http.Request) {
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
	require.Equal(t, model.Response{
		Blocks: []model.Block{
			{Text: "Let me."},
			{ToolUse: &model.ToolUse{ID: "t1", Name: "look", Input: json.RawMessage(`{"a":1,"b":12345678901234567890}`)}},
			{ToolUse: &model.ToolUse{ID: "t2", Name: "plain", Input: json.RawMessage(`{}`)}},
		},
		StopReason: model.StopToolUse,
		Usage:      model.Usage{InputTokens: 10, OutputTokens: 2, CacheReadTokens: 3, CacheWriteTokens: 4},
	}, r)
	require.Equal(t, 19, r.Usage.Total())
	require.Len(t, r.ToolUses(), 2)

	stored, err := json.Marshal(r)
	require.NoError(t, err)
	var replayed model.Response
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
		reason model.Reason
		retry  bool
	}{
		"nothing":           {nil, model.Broken, true},
		"no stop":           {[]string{"contentBlockDelta", text, "metadata", usageEvent}, model.Broken, true},
		"no usage":          {[]string{"contentBlockDelta", text, "messageStop", stop}, model.Broken, true},
		"cut tool input":    {[]string{"contentBlockStart", tool, "contentBlockDelta", part, "messageStop", `{"stopReason":"tool_use"}`, "metadata", usageEvent}, model.Malformed, true},
		"tool input no obj": {[]string{"contentBlockStart", tool, "contentBlockDelta", list, "messageStop", `{"stopReason":"tool_use"}`, "metadata", usageEvent}, model.Malformed, true},
		"malformed":         {[]string{"messageStop", `{"stopReason":"malformed_tool_use"}`, "metadata", usageEvent}, model.Malformed, true},
		"tool at the limit": {[]string{"contentBlockStart", tool, "contentBlockDelta", part, "messageStop", `{"stopReason":"max_tokens"}`, "metadata", usageEvent}, model.Truncated, false},
		"event is not json": {[]string{"contentBlockDelta", `{"contentBlock`}, model.Broken, true},
		"tools of one id": {[]string{"contentBlockStart", tool, "contentBlockStart", `{"contentBlockIndex":1,"start":{"toolUse":{"toolUseId":"t1","name":"see"}}}`, "messageStop", stop, "metadata", usageEvent},
			model.Malformed, true},
		"tool without an id": {[]string{"contentBlockStart", `{"contentBlockIndex":0,"start":{"toolUse":{"name":"x"}}}`, "messageStop", stop, "metadata", usageEvent}, model.Malformed, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := speak(t, Config{}, func(w http.ResponseWriter, _ *http.Request) { events(w, c.events...) })
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
		reason model.Reason
		retry  bool
	}{
		{429, "ThrottlingException", model.Throttled, true},
		{400, "ServiceQuotaExceededException", model.Throttled, false},
		{503, "ServiceUnavailableException", model.Unavailable, true},
		{500, "InternalServerException", model.Unavailable, true},
		{429, "ModelNotReadyException", model.Unavailable, true},
		{424, "ModelErrorException", model.Unavailable, true},
		{408, "ModelTimeoutException", model.TimedOut, true},
		{400, "ValidationException", model.Invalid, false},
		{404, "ResourceNotFoundException", model.Missing, false},
		{403, "AccessDeniedException", model.Denied, false},
		{403, "UnrecognizedClientException", model.Denied, false},
		{403, "ExpiredTokenException", model.Denied, false},
		{429, "Whatever", model.Throttled, true},
		{502, "", model.Unavailable, true},
		{403, "", model.Denied, false},
		{404, "", model.Missing, false},
		{418, "", model.Invalid, false},
	} {
		t.Run(c.code, func(t *testing.T) {
			s := speak(t, Config{}, func(w http.ResponseWriter, _ *http.Request) {
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
		s := speak(t, Config{}, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = w.Write([]byte("<html>bad gateway</html>"))
		})
		_, err := s.client.Converse(t.Context(), hello, nil)
		require.Equal(t, model.Unavailable, reasonOf(t, err).Reason)
	})
	t.Run("too long", func(t *testing.T) {
		s := speak(t, Config{}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Amzn-Errortype", "ValidationException")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"message":"Input is too long for requested model."}`))
		})
		_, err := s.client.Converse(t.Context(), hello, nil)
		require.Equal(t, model.TooLong, reasonOf(t, err).Reason)
	})
}

func TestErrorsWithinTheStream(t *testing.T) {
	for code, want := range map[string]struct {
		reason model.Reason
		retry  bool
	}{
		"modelStreamErrorException":   {model.Broken, true},
		"throttlingException":         {model.Throttled, true},
		"serviceUnavailableException": {model.Unavailable, true},
		"internalServerException":     {model.Unavailable, true},
		"validationException":         {model.Invalid, false},
		"neverSeenException":          {model.Broken, true},
	} {
		t.Run(code, func(t *testing.T) {
			s := speak(t, Config{}, func(w http.ResponseWriter, _ *http.Request) {
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
		s := speak(t, Config{StallWait: 20 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
			events(w, "messageStart", `{"role":"assistant"}`)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
		_, err := s.client.Converse(t.Context(), hello, nil)
		e := reasonOf(t, err)
		require.Equal(t, model.TimedOut, e.Reason)
		require.True(t, e.Temporary())
	})
	t.Run("before the answer", func(t *testing.T) {
		s := speak(t, Config{HeaderWait: 20 * time.Millisecond}, func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		})
		_, err := s.client.Converse(t.Context(), hello, nil)
		e := reasonOf(t, err)
		require.Equal(t, model.TimedOut, e.Reason)
		require.True(t, e.Temporary())
	})
}

func TestNobodyAtTheEndpoint(t *testing.T) {
	client, err := New(Config{Region: "us-east-1", Endpoint: "http://127.0.0.1:1"})
	require.NoError(t, err)
	_, err = client.Converse(t.Context(), hello, nil)
	e := reasonOf(t, err)
	require.Equal(t, model.Unavailable, e.Reason)
	require.True(t, e.Temporary())
	require.NotContains(t, err.Error(), "127.0.0.1")
}

func TestConfigIsChecked(t *testing.T) {
	_, err := New(Config{Endpoint: "http://127.0.0.1:1"})
	require.ErrorContains(t, err, "region")
	_, err = New(Config{Region: "us-east-1"})
	require.ErrorContains(t, err, "credentials")
}

func TestABearerTokenOfTheEnvironmentStaysHere(t *testing.T) {
	t.Setenv("AWS_BEARER_TOKEN_BEDROCK", "real-secret")
	s := speak(t, Config{}, func(w http.ResponseWriter, _ *http.Request) {
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
