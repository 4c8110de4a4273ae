package bucket_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/agentplatform/agentplatform/pkg/local/bucket"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// childDir, when set, makes this binary a server over that directory instead of a test run.
const childDir = "BUCKET_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		os.Exit(child(dir))
	}
	goleak.VerifyTestMain(m,
		// fasthttp has one clock for the whole process, and a cleaner of idle workers that sleeps 10 s at a time and
		// sees the stop when it wakes.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

// child serves until its standard input ends, so that it never outlives the test.
func child(dir string) int {
	s, err := bucket.Start(context.Background(), config(dir))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(s.Endpoint())
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := s.Stop(context.Background()); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func config(dir string) bucket.Config {
	return bucket.Config{
		Dir: dir, RootKey: "root", RootSecret: "root-secret", ReaderKey: "reader", ReaderSecret: "reader-secret",
		Buckets: []bucket.Bucket{
			{Name: "anchors", ObjectLock: true, Versioning: true},
			{Name: "skills", Versioning: true},
			{Name: "exports"},
		},
	}
}

func start(t *testing.T, dir string) *bucket.Server {
	t.Helper()
	s, err := bucket.Start(t.Context(), config(dir))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop(context.Background())) })
	return s
}

type process struct {
	endpoint string
	cmd      *exec.Cmd
	stdin    io.Closer
	output   *strings.Builder // everything it wrote after the endpoint, on either stream
	read     chan struct{}    // closed when its output has ended
}

// spawn starts a server in a process of its own.
func spawn(t *testing.T, dir string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = cmd.Stdout
	require.NoError(t, cmd.Start())
	p := &process{cmd: cmd, stdin: stdin, output: new(strings.Builder), read: make(chan struct{})}
	lines := bufio.NewReader(stdout)
	first, err := lines.ReadString('\n')
	require.NoError(t, err)
	p.endpoint = strings.TrimSpace(first)
	require.Contains(t, p.endpoint, "http://", "the first line of the server's output")
	go func() {
		defer close(p.read)
		_, _ = io.Copy(p.output, lines)
	}()
	t.Cleanup(func() { _ = p.kill() })
	return p
}

// kill ends the process without giving it a chance to tidy up.
func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil {
		return err
	}
	<-p.read
	_ = p.cmd.Wait() // "signal: killed"
	return nil
}

// end lets the process stop by itself.
func (p *process) end() error {
	if err := p.stdin.Close(); err != nil {
		return err
	}
	<-p.read
	return p.cmd.Wait()
}

func client(endpoint, who string) *s3.Client {
	return s3.New(s3.Options{
		Region: "us-east-1", BaseEndpoint: &endpoint, UsePathStyle: true, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(who, who+"-secret", ""),
		HTTPClient:  &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}},
	})
}

func put(t *testing.T, c *s3.Client, bucket, key, body string, more ...func(*s3.PutObjectInput)) *s3.PutObjectOutput {
	t.Helper()
	in := &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: strings.NewReader(body)}
	for _, f := range more {
		f(in)
	}
	out, err := c.PutObject(t.Context(), in)
	require.NoError(t, err)
	return out
}

func get(t *testing.T, c *s3.Client, bucket, key string, version *string) string {
	t.Helper()
	out, err := c.GetObject(t.Context(), &s3.GetObjectInput{Bucket: &bucket, Key: &key, VersionId: version})
	require.NoError(t, err)
	defer out.Body.Close()
	b, err := io.ReadAll(out.Body)
	require.NoError(t, err)
	return string(b)
}

// requireCode is the S3 error code that err must carry.
func requireCode(t *testing.T, code string, err error) {
	t.Helper()
	var api smithy.APIError
	require.True(t, errors.As(err, &api), "%v", err)
	require.Equal(t, code, api.ErrorCode(), "%v", err)
}

var key = aws.String
