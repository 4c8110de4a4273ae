package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/test/npm"
)

// awsSignIn signs in with the real aws command, as somebody without any AWS configuration.
func awsSignIn(t testing.TB, p *platform, email, password string) (tokens, error) {
	t.Helper()
	bin, err := exec.LookPath("aws")
	require.NoError(t, err, "this test needs the aws command: install the AWS CLI")
	none := filepath.Join(t.TempDir(), "none")
	cmd := exec.Command(bin, "cognito-idp", "initiate-auth", "--endpoint-url", p.Outputs.APIURL, "--region", p.Outputs.Region, "--output", "json",
		"--auth-flow", "USER_PASSWORD_AUTH", "--client-id", p.Outputs.ClientID, "--auth-parameters", "USERNAME="+email+",PASSWORD="+password)
	cmd.Env = append(os.Environ(), "AWS_CONFIG_FILE="+none, "AWS_SHARED_CREDENTIALS_FILE="+none, "AWS_PAGER=", "AWS_EC2_METADATA_DISABLED=true")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return tokens{}, errors.New(strings.TrimSpace(stderr.String()))
	}
	var answer struct{ AuthenticationResult tokens }
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &answer))
	return answer.AuthenticationResult, nil
}

// node runs a script of this folder with the real aws-amplify over TLS, trusting the platform's CA; it hands over each line of JSON that
// the script prints, and gives the exit code.
func node(t testing.TB, p *platform, script string, on func(json.RawMessage), env ...string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*waitTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", script)
	cmd.Dir = npm.Folder(t)
	cmd.Env = append(append(os.Environ(), "ENDPOINT="+p.Outputs.AppSyncURL+"/graphql", "REGION="+p.Outputs.Region, "NODE_EXTRA_CA_CERTS="+p.Outputs.CAFile), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		on(bytes.Clone(lines.Bytes()))
	}
	if err := cmd.Wait(); err != nil {
		t.Log(script, err, stderr.String())
	}
	return cmd.ProcessState.ExitCode()
}

// TestAmplify: signed in by the aws command, the real Amplify client follows a thread over TLS, sends a message, and the reply streams to
// it in more than one piece before the whole message comes.
func TestAmplify(t *testing.T) {
	t.Parallel()
	p := sharedPlatform(t)
	_, err := awsSignIn(t, p, "alice@acme.test", "wrong")
	require.ErrorContains(t, err, "An error occurred (NotAuthorizedException) when calling the InitiateAuth operation: Incorrect username or password.")
	signedIn, err := awsSignIn(t, p, "alice@acme.test", p.Password)
	require.NoError(t, err)
	alice := &user{platform: p, email: "alice@acme.test", tokens: signedIn}
	thread := alice.open(t)
	agent := alice.query(t, `query ($id: ID!) { getThread(id: $id) { agentId } }`, vars{"id": thread}).get("getThread.agentId")

	var chunks, order []string
	var reply string
	code := node(t, p, "amplify.mjs", func(line json.RawMessage) {
		switch member(line, "event.__typename") {
		case "StreamChunkEvent":
			if text := member(line, "event.chunk"); text != "" {
				chunks = append(chunks, text)
			}
		case "NewMessageEvent":
			order = append(order, member(line, "event.message.role"))
			reply = member(line, "event.message.body")
		case "AgentStatusEvent":
			order = append(order, member(line, "event.status"))
		}
		require.Empty(t, member(line, "error"), string(line))
	}, "TOKEN="+signedIn.AccessToken, "ID_TOKEN="+signedIn.IdToken, "THREAD_ID="+thread, "AGENT_ID="+agent, "BODY=/slow 10\nHello! Who are you?", "TIMEOUT_MS=40000")
	require.Zero(t, code)
	require.Greater(t, len(chunks), 1, "the reply streams")
	require.Equal(t, reply, strings.Join(chunks, ""))
	require.Contains(t, reply, "My name is Ada.")
	require.Equal(t, []string{"user", "thinking", "streaming", "assistant"}, order)
}

// TestAmplifyIsRefused: the client sees the typed error of a subscription to another tenant's thread.
func TestAmplifyIsRefused(t *testing.T) {
	t.Parallel()
	p := sharedPlatform(t)
	foreign := p.foreign(t)
	var problem string
	code := node(t, p, "amplify.mjs", func(line json.RawMessage) {
		if text := member(line, "error"); text != "" {
			problem = text
		}
	}, "TOKEN="+p.as(t, "alice").tokens.AccessToken, "THREAD_ID="+foreign, "TIMEOUT_MS=40000")
	require.Equal(t, 1, code)
	require.Contains(t, problem, "thread not found")
}

// TestAmplifyQueries: Amplify's queries and mutations go through {appsync_url}/graphql, where errors come with status 200.
func TestAmplifyQueries(t *testing.T) {
	t.Parallel()
	p := sharedPlatform(t)
	max := p.as(t, "max")
	thread := max.query(t, `mutation { createThread(input: {title: "For Amplify"}) { id } }`, nil).get("createThread.id")
	var lines []json.RawMessage
	code := node(t, p, "amplify_query.mjs", func(line json.RawMessage) { lines = append(lines, line) }, "TOKEN="+max.tokens.AccessToken, "THREAD_ID="+thread)
	require.Zero(t, code)
	require.Len(t, lines, 3)
	require.Contains(t, string(lines[0]), `{"id":"`+thread+`","title":"For Amplify","agent":{"name":"Ada"}}`)
	require.Equal(t, "Changed by Amplify", member(lines[1], "data.updateThread.title"))
	require.Equal(t, "NotFound", member(lines[2], "errors.0.errorType"))
	require.Equal(t, "thread not found", member(lines[2], "errors.0.message"))
	require.Equal(t, "getThread", member(lines[2], "errors.0.path.0"))
}
