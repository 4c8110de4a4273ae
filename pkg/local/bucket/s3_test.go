package bucket_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/stretchr/testify/require"
)

func lockedUntil(until time.Time) func(*s3.PutObjectInput) {
	return func(in *s3.PutObjectInput) {
		in.ObjectLockMode, in.ObjectLockRetainUntilDate = types.ObjectLockModeCompliance, &until
		in.ChecksumAlgorithm = types.ChecksumAlgorithmSha256
	}
}

func TestComplianceLockHoldsForRoot(t *testing.T) {
	srv := start(t, t.TempDir())
	root, ctx := client(srv.Endpoint(), "root"), t.Context()
	until := time.Now().Add(time.Hour).Truncate(time.Second)
	b, k := key("anchors"), key("anchors/cadence-000000000001.json")
	first := put(t, root, *b, *k, "one", lockedUntil(until)).VersionId
	require.NotEmpty(t, aws.ToString(first))

	retain := func(mode types.ObjectLockRetentionMode, at time.Time) error {
		_, err := root.PutObjectRetention(ctx, &s3.PutObjectRetentionInput{Bucket: b, Key: k, VersionId: first,
			BypassGovernanceRetention: aws.Bool(true),
			Retention:                 &types.ObjectLockRetention{Mode: mode, RetainUntilDate: &at}})
		return err
	}
	requireCode(t, "AccessDenied", retain(types.ObjectLockRetentionModeCompliance, until.Add(-time.Minute)))
	requireCode(t, "AccessDenied", retain(types.ObjectLockRetentionModeGovernance, until))
	require.NoError(t, retain(types.ObjectLockRetentionModeCompliance, until.Add(time.Minute)), "longer is allowed")

	_, err := root.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: b, Key: k, VersionId: first})
	requireCode(t, "AccessDenied", err)
	_, err = root.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: b, Key: k, VersionId: first, BypassGovernanceRetention: aws.Bool(true)})
	requireCode(t, "AccessDenied", err)
	_, err = root.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: b})
	requireCode(t, "BucketNotEmpty", err)
	_, err = root.PutBucketVersioning(ctx, &s3.PutBucketVersioningInput{Bucket: b,
		VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusSuspended}})
	requireCode(t, "InvalidBucketState", err)
	require.Equal(t, "one", get(t, root, *b, *k, first))

	// The lock is on the version, not on the key: an overwrite makes a newer one and leaves it be.
	second := put(t, root, *b, *k, "two").VersionId
	require.NotEqual(t, *first, *second)
	require.Equal(t, "two", get(t, root, *b, *k, nil))
	require.Equal(t, "one", get(t, root, *b, *k, first))
	_, err = root.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: b, Key: k, VersionId: first})
	requireCode(t, "AccessDenied", err)
	_, err = root.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: b, Key: k, VersionId: second})
	require.NoError(t, err, "a version without a lock may go")
	require.Equal(t, "one", get(t, root, *b, *k, nil))
}

func TestDeleteMarkersAreListed(t *testing.T) {
	srv := start(t, t.TempDir())
	root, ctx := client(srv.Endpoint(), "root"), t.Context()
	b, k := key("anchors"), key("a")
	first := put(t, root, *b, *k, "one", lockedUntil(time.Now().Add(time.Hour))).VersionId

	deleted, err := root.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: b, Key: k})
	require.NoError(t, err)
	require.True(t, aws.ToBool(deleted.DeleteMarker))
	_, err = root.GetObject(ctx, &s3.GetObjectInput{Bucket: b, Key: k})
	requireCode(t, "NoSuchKey", err)

	out, err := client(srv.Endpoint(), "reader").ListObjectVersions(ctx, &s3.ListObjectVersionsInput{Bucket: b})
	require.NoError(t, err)
	require.Len(t, out.DeleteMarkers, 1)
	require.Equal(t, *deleted.VersionId, *out.DeleteMarkers[0].VersionId)
	require.True(t, *out.DeleteMarkers[0].IsLatest)
	require.Len(t, out.Versions, 1)
	require.Equal(t, *first, *out.Versions[0].VersionId)
	require.False(t, *out.Versions[0].IsLatest)
	require.Equal(t, "one", get(t, root, *b, *k, first))
}

func TestOneConditionalWriterWins(t *testing.T) {
	srv := start(t, t.TempDir())
	root := client(srv.Endpoint(), "root")
	const writers = 8
	codes := make([]error, writers)
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			_, codes[i] = root.PutObject(t.Context(), &s3.PutObjectInput{Bucket: key("anchors"), Key: key("a"),
				Body: strings.NewReader(fmt.Sprint(i)), IfNoneMatch: key("*")})
		})
	}
	wg.Wait()
	won := -1
	for i, err := range codes {
		if err == nil {
			require.Equal(t, -1, won, "two writers won")
			won = i
			continue
		}
		requireCode(t, "PreconditionFailed", err)
	}
	require.NotEqual(t, -1, won, "nobody won")
	require.Equal(t, fmt.Sprint(won), get(t, root, "anchors", "a", nil))

	out, err := root.ListObjectVersions(t.Context(), &s3.ListObjectVersionsInput{Bucket: key("anchors")})
	require.NoError(t, err)
	require.Len(t, out.Versions, 1)
}

func TestPresignedURLExpires(t *testing.T) {
	srv := start(t, t.TempDir())
	root := client(srv.Endpoint(), "root")
	put(t, root, "exports", "a.csv", "one")
	req, err := s3.NewPresignClient(root).PresignGetObject(t.Context(),
		&s3.GetObjectInput{Bucket: key("exports"), Key: key("a.csv")}, s3.WithPresignExpires(3*time.Second))
	require.NoError(t, err)
	status := func(url string) int {
		res, err := http.Get(url)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		return res.StatusCode
	}
	require.Equal(t, http.StatusOK, status(req.URL))
	require.Equal(t, http.StatusForbidden, status(strings.Replace(req.URL, "a.csv", "b.csv", 1)), "another key")
	require.Equal(t, http.StatusForbidden, status(strings.Replace(req.URL, "Expires=3", "Expires=3000", 1)), "a longer life")
	require.Eventually(t, func() bool { return status(req.URL) == http.StatusForbidden }, time.Minute, 100*time.Millisecond)
}
