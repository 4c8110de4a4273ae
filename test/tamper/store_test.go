package tamper_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/local/bucket"
	"github.com/agentplatform/agentplatform/pkg/object"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
)

const (
	region  = "us-east-1"
	root    = "root"   // the bucket's administrator: key id and secret
	reader  = "reader" // whoever verifies
	audited = "audit"  // the bucket that every other one is a copy of
	exports = "exports"
)

// store is the local S3 server over its folder, with a bucket for every world.
type store struct {
	dir    string
	serial atomic.Int64
	users  map[string]*object.Store // by key id: a client keeps its connections, so there are not many
	api    *s3.Client               // of root, for what the platform's own client cannot do
}

func newStore(t *testing.T) *store {
	t.Helper()
	s := &store{dir: pgtest.Folder(t)}
	server, err := bucket.Start(t.Context(), bucket.Config{Dir: s.dir, Region: region,
		RootKey: root, RootSecret: root, ReaderKey: reader, ReaderSecret: reader,
		Buckets: []bucket.Bucket{{Name: audited, ObjectLock: true}, {Name: exports}}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop(context.Background())) })
	endpoint := server.Endpoint()
	s.users = map[string]*object.Store{}
	for _, who := range []string{root, reader} {
		s.users[who] = object.New(object.Config{Region: region, Endpoint: endpoint, AccessKey: who, Secret: who, PathStyle: true})
	}
	s.api = s3.New(s3.Options{Region: region, BaseEndpoint: &endpoint, UsePathStyle: true, Credentials: credentials.NewStaticCredentialsProvider(root, root, "")})
	return s
}

// as is one bucket as root or reader see it.
func (s *store) as(who, name string) *object.Bucket { return s.users[who].In(name) }

// folders are where the server keeps a bucket: its objects, their older versions, and the attributes of both.
func (s *store) folders(name string) [4]string {
	versions := filepath.Join(s.dir, "versions")
	return [4]string{filepath.Join(s.dir, "objects", name), filepath.Join(versions, name),
		filepath.Join(s.dir, "meta", name), filepath.Join(s.dir, "meta", versions, name)}
}

// clone is a copy of a bucket under a new name, gone when t ends. Files are linked and not copied: neither the server nor the tests
// ever write into a file that is there.
func (s *store) clone(t testing.TB, name string) string {
	t.Helper()
	made := fmt.Sprintf("copy-%d", s.serial.Add(1))
	from, to := s.folders(name), s.folders(made)
	for i := range from {
		require.NoError(t, link(from[i], to[i]))
		t.Cleanup(func() { _ = os.RemoveAll(to[i]) })
	}
	// The reader's policy names its bucket.
	policy := filepath.Join(to[2], "meta", "policy")
	text, err := os.ReadFile(policy)
	require.NoError(t, err)
	replace(t, policy, bytes.ReplaceAll(text, []byte("arn:aws:s3:::"+name), []byte("arn:aws:s3:::"+made)))
	return made
}

func link(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == from {
			return nil
		}
		if err != nil {
			return err
		}
		target := to + path[len(from):]
		if entry.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		return os.Link(path, target)
	})
}

// replace puts another file in the place of one, so that links to it keep what they have.
func replace(t testing.TB, path string, text []byte) {
	t.Helper()
	beside := path + ".new"
	require.NoError(t, os.WriteFile(beside, text, 0o600))
	require.NoError(t, os.Rename(beside, path))
}

// files are the current objects of a bucket, by path.
func (s *store) files(t testing.TB, name string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	require.NoError(t, filepath.WalkDir(s.folders(name)[0], func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			found[path] = true
		}
		return err
	}))
	return found
}

// stamp gives every object of a bucket that is not known yet the time at, as if the storage's clock had told it when it was written.
func (s *store) stamp(t testing.TB, name string, known map[string]bool, at time.Time) {
	t.Helper()
	for path := range s.files(t, name) {
		if !known[path] {
			known[path] = true
			require.NoError(t, os.Chtimes(path, at, at))
		}
	}
}
