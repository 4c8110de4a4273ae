package object_test

import (
	"bufio"
	"context"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/agentplatform/agentplatform/pkg/local/bucket"
	"github.com/agentplatform/agentplatform/pkg/object"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"
)

func TestContractLocal(t *testing.T) {
	srv, err := bucket.Start(t.Context(), bucket.Config{
		Dir: t.TempDir(), RootKey: "root", RootSecret: "root-secret", ReaderKey: "reader", ReaderSecret: "reader-secret",
		Buckets: []bucket.Bucket{{Name: locked, ObjectLock: true}, {Name: plain}},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, srv.Stop(context.Background())) })
	testContract(t, at(srv.Endpoint(), false))
}

func TestContractMoto(t *testing.T) {
	s := at(moto(t), true)
	for _, in := range []*s3.CreateBucketInput{
		{Bucket: aws.String(locked), ObjectLockEnabledForBucket: aws.Bool(true)},
		{Bucket: aws.String(plain)},
	} {
		_, err := s.raw.CreateBucket(t.Context(), in)
		require.NoError(t, err)
	}
	testContract(t, s)
}

func at(endpoint string, limited bool) storage {
	return storage{
		store: object.New(object.Config{Region: "us-east-1", Endpoint: endpoint, AccessKey: "root", Secret: "root-secret", PathStyle: true}),
		raw: s3.New(s3.Options{Region: "us-east-1", BaseEndpoint: &endpoint, UsePathStyle: true,
			Credentials: credentials.NewStaticCredentialsProvider("root", "root-secret", "")}),
		limited: limited,
	}
}

// moto starts moto's server on a free port and returns its URL. The shell ends it when its own input ends, so that it
// does not outlive this process, however that ends.
func moto(t *testing.T) string {
	t.Helper()
	server, err := exec.LookPath("moto_server")
	require.NoError(t, err, "this test needs moto's server on the PATH: pip install 'moto[server]==5.2.1'")
	cmd := exec.Command("sh", "-c", `"$0" -H 127.0.0.1 -p 0 & server=$!; cat >/dev/null; kill $server; wait $server`, server)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())

	url, log, ended := make(chan string, 1), new(strings.Builder), make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(io.TeeReader(stderr, log)); lines.Scan(); {
			if _, u, ok := strings.Cut(lines.Text(), "Running on "); ok {
				select {
				case url <- strings.TrimSpace(u):
				default:
				}
			}
		}
	}()
	t.Cleanup(func() {
		require.NoError(t, stdin.Close())
		<-ended
		_ = cmd.Wait() // the status of a killed server
	})
	select {
	case u := <-url:
		return u
	case <-ended:
		require.Fail(t, "moto_server ended", log.String())
	case <-t.Context().Done():
	}
	return ""
}
