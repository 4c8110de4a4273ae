package object_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/object"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/stretchr/testify/require"
)

// storage is an S3 implementation under the contract: what this package promises on it.
type storage struct {
	store *object.Store
	raw   *s3.Client // the same place through the bare SDK, for what the port does not show
	// limited says what the implementation does not enforce: moto checks neither the signature nor the expiry of a
	// presigned URL, ignores the file name in it, lets a COMPLIANCE lock be shortened and answers a part of an upload
	// that is no more with nonsense; nor does it answer GetObjectRetention, so that the contract reads a lock by HeadObject. pkg/local/bucket enforces and answers all of it, as S3 documents it.
	limited bool
}

// Buckets that the contract needs: locked has object lock and versions, plain has neither.
const locked, plain = "contract-locked", "contract-plain"

func testContract(t *testing.T, s storage) {
	for name, test := range map[string]func(*testing.T, storage){
		"put and get":            putAndGet,
		"get is bounded":         getIsBounded,
		"missing":                missing,
		"one creator":            oneCreator,
		"list":                   list,
		"lock":                   lock,
		"presign":                presign,
		"versions":               allVersions,
		"versions over pages":    versionsOverPages,
		"keys as they are":       keysAsTheyAre,
		"lock of a version":      lockOfVersion,
		"retain":                 retain,
		"upload":                 upload,
		"upload taken up again":  uploadResumed,
		"upload that is no more": noUpload,
		"foreign errors hidden":  foreignErrorsAreHidden,
	} {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

func put(t *testing.T, s storage, bucket, key, body string, opts object.PutOptions) string {
	t.Helper()
	version, err := s.store.In(bucket).Put(t.Context(), key, strings.NewReader(body), opts)
	require.NoError(t, err)
	return version
}

func get(t *testing.T, s storage, bucket, key string) string {
	t.Helper()
	b, err := s.store.In(bucket).Get(t.Context(), key, 1<<20)
	require.NoError(t, err)
	return string(b)
}

func putAndGet(t *testing.T, s storage) {
	for _, key := range []string{"a", "deep/er/a.json", "sp ace/ü+&=?#%.txt", "'quoted'(1)!*"} {
		body := "body of " + key
		require.Empty(t, put(t, s, plain, key, body, object.PutOptions{}), "no versions, no version id")
		require.Equal(t, body, get(t, s, plain, key))
		require.NotEmpty(t, put(t, s, locked, key, body, object.PutOptions{}))
	}
	put(t, s, plain, "empty", "", object.PutOptions{})
	require.Empty(t, get(t, s, plain, "empty"))

	big := bytes.Repeat([]byte("0123456789abcdef"), 3<<16) // 3 MiB: more than one buffer
	_, err := s.store.In(plain).Put(t.Context(), "big", bytes.NewReader(big), object.PutOptions{ContentType: "text/csv"})
	require.NoError(t, err)
	back, err := s.store.In(plain).Get(t.Context(), "big", int64(len(big)))
	require.NoError(t, err)
	require.True(t, bytes.Equal(big, back))

	for key, want := range map[string]string{"big": "text/csv", "a": "application/octet-stream"} {
		head, err := s.raw.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: aws.String(plain), Key: &key})
		require.NoError(t, err)
		require.Equal(t, want, *head.ContentType)
	}

	// A reader that has been moved is written from where it stands.
	r := strings.NewReader("skip this")
	_, err = r.Seek(5, io.SeekStart)
	require.NoError(t, err)
	_, err = s.store.In(plain).Put(t.Context(), "rest", r, object.PutOptions{})
	require.NoError(t, err)
	require.Equal(t, "this", get(t, s, plain, "rest"))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.store.In(plain).Put(ctx, "cancelled", strings.NewReader("x"), object.PutOptions{})
	require.ErrorIs(t, err, context.Canceled)
}

func getIsBounded(t *testing.T, s storage) {
	put(t, s, plain, "ten", "0123456789", object.PutOptions{})
	_, err := s.store.In(plain).Get(t.Context(), "ten", 9)
	require.ErrorIs(t, err, object.ErrTooLarge)
	b, err := s.store.In(plain).Get(t.Context(), "ten", 10)
	require.NoError(t, err)
	require.Len(t, b, 10)
}

func missing(t *testing.T, s storage) {
	_, err := s.store.In(plain).Get(t.Context(), "nowhere", 10)
	var f *fault.Error
	require.ErrorAs(t, err, &f)
	require.Equal(t, fault.Missing("object"), f)

	put(t, s, locked, "deleted", "x", object.PutOptions{})
	_, err = s.raw.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: aws.String(locked), Key: aws.String("deleted")})
	require.NoError(t, err)
	_, err = s.store.In(locked).Get(t.Context(), "deleted", 10)
	require.ErrorAs(t, err, &f, "a delete marker is a missing key")
}

func oneCreator(t *testing.T, s storage) {
	const writers = 4
	errs := make([]error, writers)
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			_, errs[i] = s.store.In(locked).Put(t.Context(), "once", strings.NewReader(fmt.Sprint(i)), object.PutOptions{IfNoneMatch: true})
		})
	}
	wg.Wait()
	won := ""
	for i, err := range errs {
		if err == nil {
			require.Empty(t, won, "two writers won")
			won = fmt.Sprint(i)
			continue
		}
		require.ErrorIs(t, err, object.ErrExists)
	}
	require.Equal(t, won, get(t, s, locked, "once"))
	require.Len(t, versions(t, s, "once"), 1)
}

func list(t *testing.T, s storage) {
	const n = 1003 // more than a page of 1000
	var wg sync.WaitGroup
	failed := make(chan error, n)
	slots := make(chan struct{}, 8)
	for i := range n {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			_, err := s.store.In(plain).Put(t.Context(), fmt.Sprintf("list/%04d", i), strings.NewReader("x"), object.PutOptions{})
			failed <- err
		})
	}
	wg.Wait()
	for range n {
		require.NoError(t, <-failed)
	}
	put(t, s, plain, "lisu", "x", object.PutOptions{}) // sorts after the prefix
	keys := func(prefix, after string, most int) (found []string) {
		for o, err := range s.store.In(plain).List(t.Context(), prefix, after) {
			require.NoError(t, err)
			require.EqualValues(t, 1, o.Size)
			require.WithinDuration(t, time.Now(), o.Modified, time.Minute)
			if found = append(found, o.Key); len(found) == most {
				break
			}
		}
		return found
	}
	all := keys("list/", "", 0)
	require.Len(t, all, n)
	require.IsIncreasing(t, all)
	require.Equal(t, []string{"list/1001", "list/1002"}, keys("list/", "list/1000", 0))
	require.Equal(t, []string{"list/0006"}, keys("list/", "list/0005", 1))
	require.Empty(t, keys("list/", "list/1002", 0))
	require.Empty(t, keys("nothing/", "", 0))
}

func versions(t *testing.T, s storage, key string) []types.ObjectVersion {
	t.Helper()
	out, err := s.raw.ListObjectVersions(t.Context(), &s3.ListObjectVersionsInput{Bucket: aws.String(locked), Prefix: &key})
	require.NoError(t, err)
	return out.Versions
}

func lock(t *testing.T, s storage) {
	until := time.Now().Add(time.Hour)
	b, k := aws.String(locked), aws.String("held")
	first := put(t, s, locked, "held", "one", object.PutOptions{RetainUntil: until, IfNoneMatch: true})
	head, err := s.raw.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: b, Key: k, VersionId: &first, ChecksumMode: types.ChecksumModeEnabled})
	require.NoError(t, err)
	require.Equal(t, types.ObjectLockModeCompliance, head.ObjectLockMode)
	require.WithinDuration(t, until, *head.ObjectLockRetainUntilDate, time.Second)
	require.NotEmpty(t, aws.ToString(head.ChecksumSHA256))

	_, err = s.raw.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: b, Key: k, VersionId: &first})
	require.ErrorContains(t, err, "AccessDenied")
	shorter := until.Add(-time.Minute)
	_, err = s.raw.PutObjectRetention(t.Context(), &s3.PutObjectRetentionInput{Bucket: b, Key: k, VersionId: &first,
		Retention: &types.ObjectLockRetention{Mode: types.ObjectLockRetentionModeCompliance, RetainUntilDate: &shorter}})
	if !s.limited {
		require.ErrorContains(t, err, "AccessDenied")
	}

	second := put(t, s, locked, "held", "two", object.PutOptions{})
	require.NotEqual(t, first, second)
	require.Equal(t, "two", get(t, s, locked, "held"))
	require.Len(t, versions(t, s, "held"), 2)

	_, err = s.store.In(plain).Put(t.Context(), "unlockable", strings.NewReader("x"), object.PutOptions{RetainUntil: until})
	require.Error(t, err, "a bucket without object lock must not pretend")
}

func presign(t *testing.T, s storage) {
	put(t, s, plain, "exports/ü 1.csv", "a,b", object.PutOptions{ContentType: "text/csv"})
	url, err := s.store.In(plain).Presign(t.Context(), "exports/ü 1.csv", object.PresignOptions{Validity: 3 * time.Second, FileName: "ü 1.csv"})
	require.NoError(t, err)
	disposition := ""
	fetch := func(url string) (int, string) {
		res, err := http.Get(url) // as a browser does: no header of ours
		require.NoError(t, err)
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		disposition = res.Header.Get("Content-Disposition")
		return res.StatusCode, string(body)
	}
	status, body := fetch(url)
	require.Equal(t, http.StatusOK, status, body)
	require.Equal(t, "a,b", body)
	if s.limited {
		return
	}
	_, parameters, err := mime.ParseMediaType(disposition)
	require.NoError(t, err)
	require.Equal(t, "ü 1.csv", parameters["filename"])
	put(t, s, plain, "exports/other.csv", "secret", object.PutOptions{})
	status, _ = fetch(strings.Replace(url, "%C3%BC%201.csv", "other.csv", 1))
	require.Equal(t, http.StatusForbidden, status)
	require.Eventually(t, func() bool {
		status, _ := fetch(url)
		return status == http.StatusForbidden
	}, time.Minute, 100*time.Millisecond)
}

func foreignErrorsAreHidden(t *testing.T, s storage) {
	var f *fault.Error
	_, err := s.store.In("contract-no-such-bucket").Get(t.Context(), "a", 10)
	require.Error(t, err)
	require.False(t, errors.As(err, &f), "a missing bucket is our fault, not the caller's")
	for _, err := range s.store.In("contract-no-such-bucket").List(t.Context(), "", "") {
		require.Error(t, err)
		require.False(t, errors.As(err, &f))
	}
}
