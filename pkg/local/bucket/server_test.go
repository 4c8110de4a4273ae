package bucket_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentplatform/agentplatform/pkg/local/bucket"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/stretchr/testify/require"
)

func TestDataSurvivesTheProcess(t *testing.T) {
	dir := t.TempDir()
	p := spawn(t, dir)
	root := client(p.endpoint, "root")
	first := put(t, root, "anchors", "a", "one", lockedUntil(time.Now().Add(time.Hour))).VersionId
	put(t, root, "anchors", "a", "two")
	put(t, root, "skills", "b/c", "pack", func(in *s3.PutObjectInput) {
		in.ContentType, in.Metadata = key("application/zip"), map[string]string{"pack": "7"}
	})
	_, err := root.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: key("skills"), Key: key("b/c")})
	require.NoError(t, err)
	require.NoError(t, p.kill())

	p = spawn(t, dir)
	root, reader := client(p.endpoint, "root"), client(p.endpoint, "reader")
	require.Equal(t, "two", get(t, reader, "anchors", "a", nil))
	require.Equal(t, "one", get(t, reader, "anchors", "a", first))
	_, err = root.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: key("anchors"), Key: key("a"), VersionId: first})
	requireCode(t, "AccessDenied", err)
	out, err := reader.ListObjectVersions(t.Context(), &s3.ListObjectVersionsInput{Bucket: key("skills")})
	require.NoError(t, err)
	require.Len(t, out.DeleteMarkers, 1)
	require.Len(t, out.Versions, 1)
	head, err := reader.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: key("skills"), Key: key("b/c"), VersionId: out.Versions[0].VersionId})
	require.NoError(t, err)
	require.Equal(t, "application/zip", *head.ContentType)
	require.Equal(t, "7", head.Metadata["pack"])
	_, err = reader.PutObject(t.Context(), &s3.PutObjectInput{Bucket: key("anchors"), Key: key("a"), Body: strings.NewReader("no")})
	requireCode(t, "AccessDenied", err)

	require.NoError(t, p.end())
	require.Empty(t, p.output.String(), "a server writes nothing to the standard streams")
}

func TestAnotherReaderKeyReplacesTheOld(t *testing.T) {
	dir := t.TempDir()
	s, err := bucket.Start(t.Context(), config(dir))
	require.NoError(t, err)
	put(t, client(s.Endpoint(), "root"), "exports", "a", "one")
	require.NoError(t, s.Stop(t.Context()))

	cfg := config(dir)
	cfg.ReaderKey, cfg.ReaderSecret = "reader2", "reader2-secret"
	s, err = bucket.Start(t.Context(), cfg)
	require.NoError(t, err)
	require.Equal(t, "one", get(t, client(s.Endpoint(), "reader2"), "exports", "a", nil))
	_, err = client(s.Endpoint(), "reader").GetObject(t.Context(), &s3.GetObjectInput{Bucket: key("exports"), Key: key("a")})
	requireCode(t, "InvalidAccessKeyId", err)
	require.NoError(t, s.Stop(t.Context()))
}

func TestStartOnlyAddsProtection(t *testing.T) {
	dir := t.TempDir()
	with := func(b bucket.Bucket, check func(*s3.Client)) {
		cfg := config(dir)
		cfg.Buckets = []bucket.Bucket{b}
		s, err := bucket.Start(t.Context(), cfg)
		require.NoError(t, err)
		check(client(s.Endpoint(), "root"))
		require.NoError(t, s.Stop(t.Context()))
	}
	with(bucket.Bucket{Name: "anchors"}, func(c *s3.Client) {
		put(t, c, "anchors", "a", "one")
		_, err := c.GetObjectLockConfiguration(t.Context(), &s3.GetObjectLockConfigurationInput{Bucket: key("anchors")})
		requireCode(t, "ObjectLockConfigurationNotFoundError", err)
	})
	for _, b := range []bucket.Bucket{{Name: "anchors", ObjectLock: true}, {Name: "anchors"}} {
		with(b, func(c *s3.Client) {
			require.Equal(t, "one", get(t, c, "anchors", "a", nil))
			put(t, c, "anchors", "b", "locked", lockedUntil(time.Now().Add(time.Hour)))
			v, err := c.GetBucketVersioning(t.Context(), &s3.GetBucketVersioningInput{Bucket: key("anchors")})
			require.NoError(t, err)
			require.Equal(t, types.BucketVersioningStatusEnabled, v.Status)
		})
	}
}

func TestHalfMadeBucketIsMadeAgain(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "objects", "anchors"), 0o700))
	root := client(start(t, dir).Endpoint(), "root")
	put(t, root, "anchors", "a", "one", lockedUntil(time.Now().Add(time.Hour)))
}

func TestWorkingDirectoryIsGivenBack(t *testing.T) {
	before, err := os.Getwd()
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	require.NoError(t, err)
	s, err := bucket.Start(t.Context(), config("data")) // relative: means <here>/data
	require.NoError(t, err)
	put(t, client(s.Endpoint(), "root"), "exports", "a", "one")
	require.FileExists(t, filepath.Join(here, "data", "objects", "exports", "a"))

	_, err = bucket.Start(t.Context(), config(t.TempDir()))
	require.ErrorContains(t, err, "already running")

	require.NoError(t, s.Stop(t.Context()))
	require.NoError(t, s.Stop(t.Context()), "a second Stop has the same outcome")
	now, err := os.Getwd()
	require.NoError(t, err)
	require.Equal(t, here, now)
	require.NotEqual(t, before, now)
}

func TestStartFailsWithOneClearError(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	before, err := os.Getwd()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))

	for name, change := range map[string]func(*bucket.Config){
		"address already in use":                       func(c *bucket.Config) { c.Addr = taken.Addr().String() },
		"missing port in address":                      func(c *bucket.Config) { c.Addr = "nowhere" },
		"not a directory":                              func(c *bucket.Config) { c.Dir = file },
		"Dir is empty":                                 func(c *bucket.Config) { c.Dir = "" },
		"need a key and a secret":                      func(c *bucket.Config) { c.ReaderSecret = "" },
		"reader key must differ":                       func(c *bucket.Config) { c.ReaderKey = c.RootKey },
		`"../x" is not a bucket name`:                  func(c *bucket.Config) { c.Buckets = []bucket.Bucket{{Name: "../x"}} },
		`"aaa" is not a bucket name or is named twice`: func(c *bucket.Config) { c.Buckets = []bucket.Bucket{{Name: "aaa"}, {Name: "aaa"}} },
	} {
		cfg := config(t.TempDir())
		change(&cfg)
		_, err := bucket.Start(t.Context(), cfg)
		require.ErrorContains(t, err, name)
		if name == "address already in use" {
			require.ErrorIs(t, err, syscall.EADDRINUSE)
		}
		now, err := os.Getwd()
		require.NoError(t, err)
		require.Equal(t, before, now)
	}
	start(t, t.TempDir()) // and none of them is in the way of the next
}

// TestStopDoesNotWaitForSilentConnections: clients keep connections that they have never used.
func TestStopDoesNotWaitForSilentConnections(t *testing.T) {
	s, err := bucket.Start(t.Context(), config(t.TempDir()))
	require.NoError(t, err)
	spare, err := net.Dial("tcp", strings.TrimPrefix(s.Endpoint(), "http://"))
	require.NoError(t, err)
	defer spare.Close()
	put(t, client(s.Endpoint(), "root"), "exports", "a", "one") // comes after the spare, which is accepted by now
	require.NoError(t, s.Stop(t.Context()))
	_, err = spare.Read(make([]byte, 1))
	require.Error(t, err)
}

// TestStopWaitsForARequestAtWork, which loses neither its body nor its answer.
func TestStopWaitsForARequestAtWork(t *testing.T) {
	dir := t.TempDir()
	s, err := bucket.Start(t.Context(), config(dir))
	require.NoError(t, err)
	root := client(s.Endpoint(), "root")
	req, err := s3.NewPresignClient(root).PresignPutObject(t.Context(), &s3.PutObjectInput{Bucket: key("exports"), Key: key("slow")})
	require.NoError(t, err)
	body := bytes.Repeat([]byte("s"), 32<<20) // more than the sockets hold: when all but the end is sent, it is read
	r, w := io.Pipe()
	put, err := http.NewRequestWithContext(t.Context(), req.Method, req.URL, r)
	require.NoError(t, err)
	put.ContentLength = int64(len(body))
	answer := make(chan int, 1)
	go func() {
		res, err := http.DefaultClient.Do(put)
		if err != nil {
			answer <- 0
			return
		}
		_ = res.Body.Close()
		answer <- res.StatusCode
	}()
	_, err = w.Write(body[1:])
	require.NoError(t, err)

	stopped := make(chan error, 1)
	go func() { stopped <- s.Stop(context.Background()) }()
	require.Eventually(t, func() bool { // refused: the stop has begun
		c, err := net.Dial("tcp", strings.TrimPrefix(s.Endpoint(), "http://"))
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	}, time.Minute, 5*time.Millisecond)
	_, err = w.Write(body[:1])
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.Equal(t, http.StatusOK, <-answer)
	require.NoError(t, <-stopped)
	stored, err := os.ReadFile(filepath.Join(dir, "objects", "exports", "slow"))
	require.NoError(t, err)
	require.True(t, bytes.Equal(body, stored))
}

// BenchmarkStart is a start and stop over an existing directory, without requests.
func BenchmarkStart(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		s, err := bucket.Start(b.Context(), config(dir))
		require.NoError(b, err)
		require.NoError(b, s.Stop(b.Context()))
	}
}
