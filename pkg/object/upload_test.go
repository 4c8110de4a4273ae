package object_test

import (
	"bytes"
	"testing"

	"github.com/agentplatform/agentplatform/pkg/object"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"
)

func upload(t *testing.T, s storage) {
	bucket := s.store.In(plain)
	u, err := bucket.StartUpload(t.Context(), "parts.csv", "text/csv")
	require.NoError(t, err)
	first, second := bytes.Repeat([]byte("x"), object.MinPart), []byte("the end")
	require.NoError(t, u.Part(t.Context(), 1, first))
	require.NoError(t, u.Part(t.Context(), 2, second))
	require.Empty(t, keysOf(t, bucket, "parts.csv"), "not there before it is complete")
	parts, err := u.Parts(t.Context())
	require.NoError(t, err)
	require.Len(t, parts, 2)
	require.NoError(t, u.Complete(t.Context(), parts))
	text, err := bucket.Get(t.Context(), "parts.csv", 2*object.MinPart)
	require.NoError(t, err)
	require.True(t, bytes.Equal(append(first, second...), text))
	head, err := s.raw.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: aws.String(plain), Key: aws.String("parts.csv")})
	require.NoError(t, err)
	require.Equal(t, "text/csv", *head.ContentType)

	body, size, err := bucket.Open(t.Context(), "parts.csv", "")
	require.NoError(t, err)
	defer body.Close()
	require.EqualValues(t, len(text), size)
	start := make([]byte, 3)
	_, err = body.Read(start)
	require.NoError(t, err)
}

// uploadResumed: another process knows key and id only, writes the last part again and leaves out what it does not want.
func uploadResumed(t *testing.T, s storage) {
	bucket := s.store.In(plain)
	u, err := bucket.StartUpload(t.Context(), "resumed", "")
	require.NoError(t, err)
	first := bytes.Repeat([]byte("y"), object.MinPart)
	require.NoError(t, u.Part(t.Context(), 1, first))
	require.NoError(t, u.Part(t.Context(), 2, []byte("torn")))
	require.NoError(t, u.Part(t.Context(), 3, []byte("too much")))

	again := bucket.ResumeUpload("resumed", u.ID())
	require.NoError(t, again.Part(t.Context(), 2, []byte("whole")))
	parts, err := again.Parts(t.Context())
	require.NoError(t, err)
	for i, size := range []int64{object.MinPart, 5, 8} {
		require.EqualValues(t, i+1, parts[i].Number)
		require.Equal(t, size, parts[i].Size)
	}
	require.NoError(t, again.Complete(t.Context(), parts[:2]))
	text, err := bucket.Get(t.Context(), "resumed", 2*object.MinPart)
	require.NoError(t, err)
	require.True(t, bytes.Equal(append(first, "whole"...), text))
}

func noUpload(t *testing.T, s storage) {
	bucket := s.store.In(plain)
	u, err := bucket.StartUpload(t.Context(), "aborted", "")
	require.NoError(t, err)
	require.NoError(t, u.Part(t.Context(), 1, []byte("x")))
	require.NoError(t, u.Abort(t.Context()))
	require.NoError(t, u.Abort(t.Context()), "twice is once")
	if !s.limited {
		require.ErrorIs(t, u.Part(t.Context(), 1, []byte("x")), object.ErrNoUpload)
	}
	_, err = u.Parts(t.Context())
	require.ErrorIs(t, err, object.ErrNoUpload)
	require.Empty(t, keysOf(t, bucket, "aborted"), "an aborted upload leaves nothing")
}

func keysOf(t *testing.T, bucket *object.Bucket, prefix string) (keys []string) {
	t.Helper()
	for o, err := range bucket.List(t.Context(), prefix, "") {
		require.NoError(t, err)
		keys = append(keys, o.Key)
	}
	return keys
}
