package object_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/object"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"
)

// listed are the versions as "key id", markers and the latest marked, in the order of the listing.
func listed(t *testing.T, s storage, prefix, after string) (found []string) {
	t.Helper()
	for v, err := range s.store.In(locked).Versions(t.Context(), prefix, after) {
		require.NoError(t, err)
		line := v.Key + " " + v.ID
		if v.IsLatest {
			line += " latest"
		}
		if v.DeleteMarker {
			line += " deleted"
		} else {
			require.EqualValues(t, 3, v.Size)
			require.NotEmpty(t, v.ETag)
			require.NotContains(t, v.ETag, `"`)
		}
		require.WithinDuration(t, time.Now(), v.Modified, time.Minute)
		found = append(found, line)
	}
	return found
}

func allVersions(t *testing.T, s storage) {
	a := put(t, s, locked, "versions/a", "one", object.PutOptions{})
	b := put(t, s, locked, "versions/b", "one", object.PutOptions{})
	b2 := put(t, s, locked, "versions/b", "two", object.PutOptions{})
	c := put(t, s, locked, "versions/c", "one", object.PutOptions{})
	put(t, s, locked, "versiont", "one", object.PutOptions{}) // sorts after the prefix
	marker, err := s.raw.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: aws.String(locked), Key: aws.String("versions/c")})
	require.NoError(t, err)

	all := []string{"versions/a " + a + " latest", "versions/b " + b2 + " latest", "versions/b " + b,
		"versions/c " + *marker.VersionId + " latest deleted", "versions/c " + c}
	require.Equal(t, all, listed(t, s, "versions/", ""))
	require.Equal(t, all[1:], listed(t, s, "versions/", "versions/a"))
	require.Equal(t, all[3:], listed(t, s, "versions/", "versions/b"))
	require.Empty(t, listed(t, s, "versions/", "versions/c"))
	require.Empty(t, listed(t, s, "no versions/", ""))
	for v, err := range s.store.In(locked).Versions(t.Context(), "versions/", "") {
		require.NoError(t, err)
		require.Equal(t, "versions/a", v.Key)
		break
	}

	bucket := s.store.In(locked)
	for version, want := range map[string]string{b: "one", b2: "two", "": "two"} {
		text, err := bucket.GetVersion(t.Context(), "versions/b", version, 3)
		require.NoError(t, err)
		require.Equal(t, want, string(text))
		_, err = bucket.GetVersion(t.Context(), "versions/b", version, 2)
		require.ErrorIs(t, err, object.ErrTooLarge)
	}
	text, err := bucket.GetVersion(t.Context(), "versions/c", c, 3)
	require.NoError(t, err, "what a delete marker hides is still there")
	require.Equal(t, "one", string(text))
	var f *fault.Error
	_, err = bucket.GetVersion(t.Context(), "versions/none", "", 3)
	require.ErrorAs(t, err, &f)
}

func versionsOverPages(t *testing.T, s storage) {
	const n = 501 // two versions each: more than a page of 1000, and a key on its boundary
	failed := make(chan error, n)
	slots := make(chan struct{}, 8)
	for i := range n {
		go func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			for range 2 {
				if _, err := s.store.In(locked).Put(t.Context(), fmt.Sprintf("many/%04d", i), strings.NewReader("one"), object.PutOptions{}); err != nil {
					failed <- err
					return
				}
			}
			failed <- nil
		}()
	}
	for range n {
		require.NoError(t, <-failed)
	}
	found := listed(t, s, "many/", "")
	require.Len(t, found, 2*n)
	for i, line := range found {
		require.True(t, strings.HasPrefix(line, fmt.Sprintf("many/%04d ", i/2)), line)
		require.Equal(t, i%2 == 0, strings.HasSuffix(line, " latest"), line)
	}
}

// lockOfVersion: moto does not answer what a lock is.
func lockOfVersion(t *testing.T, s storage) {
	until := time.Now().Add(time.Hour)
	first := put(t, s, locked, "locked", "one", object.PutOptions{RetainUntil: until})
	second := put(t, s, locked, "locked", "two", object.PutOptions{})
	if s.limited {
		return
	}
	bucket := s.store.In(locked)
	mode, got, err := bucket.Lock(t.Context(), "locked", first)
	require.NoError(t, err)
	require.Equal(t, object.Compliance, mode)
	require.WithinDuration(t, until, got, time.Second)
	for _, version := range []string{second, ""} {
		mode, got, err = bucket.Lock(t.Context(), "locked", version)
		require.NoError(t, err)
		require.Empty(t, mode)
		require.True(t, got.IsZero())
	}
	_, _, err = bucket.Lock(t.Context(), "nothing locked", "")
	require.Error(t, err)
}

func retain(t *testing.T, s storage) {
	bucket, until := s.store.In(locked), time.Now().Add(time.Hour)
	version := put(t, s, locked, "retained", "one", object.PutOptions{})
	require.NoError(t, bucket.Retain(t.Context(), "retained", version, until))
	head, err := s.raw.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: aws.String(locked), Key: aws.String("retained"), VersionId: &version})
	require.NoError(t, err)
	require.EqualValues(t, object.Compliance, head.ObjectLockMode)
	require.WithinDuration(t, until, *head.ObjectLockRetainUntilDate, time.Second)
	if !s.limited {
		require.Error(t, bucket.Retain(t.Context(), "retained", version, until.Add(-time.Minute)), "never shorter")
		mode, _, err := bucket.Lock(t.Context(), "retained", version)
		require.NoError(t, err)
		require.Equal(t, object.Compliance, mode)
	}
	if !s.limited {
		require.Error(t, bucket.Retain(t.Context(), "not there", "", until))
	}
}
