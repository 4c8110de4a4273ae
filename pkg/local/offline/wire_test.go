package offline_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/local/offline"
)

// sdk is a plain SDK client, without our adapter.
func sdk(t *testing.T, url string) *bedrockruntime.Client {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return bedrockruntime.New(bedrockruntime.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(url), Retryer: aws.NopRetryer{},
		HTTPClient: &http.Client{Transport: transport},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "any", SecretAccessKey: "any"}, nil
		}),
	})
}

func TestConverseWithoutStreaming(t *testing.T) {
	_, url := serve(t, offline.Config{})
	client := sdk(t, url)
	input := func(text string) *bedrockruntime.ConverseInput {
		return &bedrockruntime.ConverseInput{
			ModelId: aws.String("arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.some.model-v1:0"),
			Messages: []types.Message{{Role: types.ConversationRoleUser,
				Content: []types.ContentBlock{&types.ContentBlockMemberText{Value: text}}}},
		}
	}
	out, err := client.Converse(t.Context(), input("/say hello you\n/tool look {\"a\":1}"))
	require.NoError(t, err)
	require.Equal(t, types.StopReasonToolUse, out.StopReason)
	content := out.Output.(*types.ConverseOutputMemberMessage).Value.Content
	require.Len(t, content, 2)
	require.Equal(t, "hello you", content[0].(*types.ContentBlockMemberText).Value)
	require.Equal(t, "look", *content[1].(*types.ContentBlockMemberToolUse).Value.Name)
	require.Equal(t, *out.Usage.TotalTokens, *out.Usage.InputTokens+*out.Usage.OutputTokens)

	_, err = client.Converse(t.Context(), input("/fail stream"))
	var failed *types.ModelErrorException
	require.ErrorAs(t, err, &failed)
	_, err = client.Converse(t.Context(), input("/fail throttle"))
	var throttled *types.ThrottlingException
	require.ErrorAs(t, err, &throttled)
}

func TestBadInput(t *testing.T) {
	_, url := serve(t, offline.Config{MaxBody: 64 << 10})
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	const hello = `{"role":"user","content":[{"text":"hi"}]}`
	const tool = `{"role":"assistant","content":[{"toolUse":{"toolUseId":"t1","name":"x","input":{}}}]}`
	const tools = `"toolConfig":{"tools":[{"toolSpec":{"name":"x","inputSchema":{"json":{"type":"object"}}}}]}`
	for name, body := range map[string]string{
		"empty":                 ``,
		"not json":              `{"messages":`,
		"wrong shape":           `{"messages":"hi"}`,
		"no messages":           `{"messages":[]}`,
		"no content":            `{"messages":[{"role":"user","content":[]}]}`,
		"unknown role":          `{"messages":[{"role":"system","content":[{"text":"hi"}]}]}`,
		"assistant first":       `{"messages":[{"role":"assistant","content":[{"text":"hi"}]}]}`,
		"assistant last":        `{"messages":[` + hello + `,{"role":"assistant","content":[{"text":"hi"}]}]}`,
		"two users":             `{"messages":[` + hello + `,` + hello + `]}`,
		"blank text":            `{"messages":[{"role":"user","content":[{"text":"  \n"}]}]}`,
		"blank system":          `{"system":[{"text":" "}],"messages":[` + hello + `]}`,
		"image":                 `{"messages":[{"role":"user","content":[{"image":{"format":"png"}}]}]}`,
		"zero max tokens":       `{"inferenceConfig":{"maxTokens":0},"messages":[` + hello + `]}`,
		"no tools":              `{"toolConfig":{"tools":[]},"messages":[` + hello + `]}`,
		"bad tool name":         `{"toolConfig":{"tools":[{"toolSpec":{"name":"a b","inputSchema":{"json":{}}}}]},"messages":[` + hello + `]}`,
		"no schema":             `{"toolConfig":{"tools":[{"toolSpec":{"name":"a"}}]},"messages":[` + hello + `]}`,
		"tool use, no tools":    `{"messages":[` + hello + `,` + tool + `,` + hello + `]}`,
		"tool use not answered": `{` + tools + `,"messages":[` + hello + `,` + tool + `,` + hello + `]}`,
		"answer to no tool use": `{` + tools + `,"messages":[{"role":"user","content":[{"toolResult":{"toolUseId":"t1","content":[]}}]}]}`,
		"result no object":      `{` + tools + `,"messages":[` + hello + `,` + tool + `,{"role":"user","content":[{"toolResult":{"toolUseId":"t1","content":[{"json":[1]}]}}]}]}`,
		"too large":             `{"messages":[{"role":"user","content":[{"text":"` + strings.Repeat("x", 64<<10) + `"}]}]}`,
	} {
		for _, operation := range []string{"converse", "converse-stream"} {
			status, kind, message := post(t, client, url+"/model/m%3A0/"+operation, body)
			require.Equal(t, http.StatusBadRequest, status, name)
			require.Equal(t, "ValidationException", kind, name)
			require.NotEmpty(t, message, name)
		}
	}
	for _, path := range []string{"/", "/model/m", "/model//converse", "/model/m/invoke", "/models/m/converse", "/model/%zz/converse"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/x", strings.NewReader(`{}`))
		require.NoError(t, err)
		request.URL.Opaque = path // as it stands, also when it is no valid path
		response, err := client.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.GreaterOrEqual(t, response.StatusCode, 400, path)
	}
	response, err := client.Get(url + "/model/m/converse")
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusNotFound, response.StatusCode)
	require.Equal(t, "UnknownOperationException", response.Header.Get("X-Amzn-Errortype"))
	require.Len(t, response.Header.Get("X-Amzn-Requestid"), 36)
}

func post(t *testing.T, client *http.Client, url, body string) (status int, kind, message string) {
	t.Helper()
	response, err := client.Post(url, "application/json", strings.NewReader(body))
	require.NoError(t, err)
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	var shape struct{ Message string }
	require.NoError(t, json.Unmarshal(raw, &shape), string(raw))
	return response.StatusCode, response.Header.Get("X-Amzn-Errortype"), shape.Message
}
