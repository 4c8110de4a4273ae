package bucket_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"
)

func TestReaderReadsEveryBucketAndChangesNone(t *testing.T) {
	srv := start(t, t.TempDir())
	root, reader := client(srv.Endpoint(), "root"), client(srv.Endpoint(), "reader")
	until := time.Now().Add(time.Hour)
	for _, b := range config("x").Buckets {
		t.Run(b.Name, func(t *testing.T) {
			version := put(t, root, b.Name, "dir/a.json", "one", func(in *s3.PutObjectInput) {
				if b.ObjectLock {
					in.ObjectLockMode, in.ObjectLockRetainUntilDate = types.ObjectLockModeCompliance, &until
					in.ChecksumAlgorithm = types.ChecksumAlgorithmSha256
				}
			}).VersionId
			ctx, name, k := t.Context(), &b.Name, key("dir/a.json")

			require.Equal(t, "one", get(t, reader, b.Name, "dir/a.json", nil))
			list, err := reader.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: name, Prefix: key("dir/")})
			require.NoError(t, err)
			require.Len(t, list.Contents, 1)
			versions, err := reader.ListObjectVersions(ctx, &s3.ListObjectVersionsInput{Bucket: name})
			require.NoError(t, err)
			require.Len(t, versions.Versions, 1)
			head, err := reader.HeadObject(ctx, &s3.HeadObjectInput{Bucket: name, Key: k})
			require.NoError(t, err)
			_, err = reader.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: name})
			require.NoError(t, err)
			_, err = reader.GetBucketVersioning(ctx, &s3.GetBucketVersioningInput{Bucket: name})
			require.NoError(t, err)
			if b.Versioning {
				require.Equal(t, "one", get(t, reader, b.Name, "dir/a.json", version))
			}
			if b.ObjectLock {
				require.Equal(t, types.ObjectLockModeCompliance, head.ObjectLockMode)
				require.WithinDuration(t, until, *head.ObjectLockRetainUntilDate, time.Second)
				held, err := reader.GetObjectRetention(ctx, &s3.GetObjectRetentionInput{Bucket: name, Key: k, VersionId: version})
				require.NoError(t, err)
				require.Equal(t, types.ObjectLockRetentionModeCompliance, held.Retention.Mode)
				require.WithinDuration(t, until, *held.Retention.RetainUntilDate, time.Second)
				_, err = reader.GetObjectLockConfiguration(ctx, &s3.GetObjectLockConfigurationInput{Bucket: name})
				require.NoError(t, err)
			}

			for what, attempt := range changes(ctx, reader, b.Name, "dir/a.json", version) {
				requireCode(t, "AccessDenied", attempt())
				require.Equal(t, "one", get(t, root, b.Name, "dir/a.json", nil), what)
			}
		})
	}
}

// changes is every way to change a bucket that the SDK offers and the server knows.
func changes(ctx context.Context, c *s3.Client, b, k string, version *string) map[string]func() error {
	body := func() *strings.Reader { return strings.NewReader("two") }
	later := time.Now().Add(2 * time.Hour)
	return map[string]func() error{
		"PutObject": func() error {
			_, err := c.PutObject(ctx, &s3.PutObjectInput{Bucket: &b, Key: &k, Body: body()})
			return err
		},
		"PutObject of a new key": func() error {
			_, err := c.PutObject(ctx, &s3.PutObjectInput{Bucket: &b, Key: key("new"), Body: body()})
			return err
		},
		"CopyObject": func() error {
			_, err := c.CopyObject(ctx, &s3.CopyObjectInput{Bucket: &b, Key: key("copy"), CopySource: key(b + "/" + k)})
			return err
		},
		"CreateMultipartUpload": func() error {
			_, err := c.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &b, Key: &k})
			return err
		},
		"DeleteObject": func() error {
			_, err := c.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b, Key: &k})
			return err
		},
		"DeleteObject of a version": func() error {
			_, err := c.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b, Key: &k, VersionId: version})
			return err
		},
		"DeleteObjects": func() error {
			out, err := c.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &b, Delete: &types.Delete{
				Objects: []types.ObjectIdentifier{{Key: &k}}}})
			if err == nil && len(out.Errors) == 1 { // this call reports per object
				return &denied{aws.ToString(out.Errors[0].Code)}
			}
			return err
		},
		"PutObjectTagging": func() error {
			_, err := c.PutObjectTagging(ctx, &s3.PutObjectTaggingInput{Bucket: &b, Key: &k,
				Tagging: &types.Tagging{TagSet: []types.Tag{{Key: key("a"), Value: key("b")}}}})
			return err
		},
		"PutObjectRetention": func() error {
			_, err := c.PutObjectRetention(ctx, &s3.PutObjectRetentionInput{Bucket: &b, Key: &k,
				Retention: &types.ObjectLockRetention{Mode: types.ObjectLockRetentionModeCompliance, RetainUntilDate: &later}})
			return err
		},
		"PutObjectLegalHold": func() error {
			_, err := c.PutObjectLegalHold(ctx, &s3.PutObjectLegalHoldInput{Bucket: &b, Key: &k,
				LegalHold: &types.ObjectLockLegalHold{Status: types.ObjectLockLegalHoldStatusOn}})
			return err
		},
		"PutBucketPolicy": func() error {
			_, err := c.PutBucketPolicy(ctx, &s3.PutBucketPolicyInput{Bucket: &b, Policy: key(`{"Version":"2012-10-17","Statement":[` +
				`{"Effect":"Allow","Principal":"*","Action":"s3:*","Resource":["arn:aws:s3:::` + b + `","arn:aws:s3:::` + b + `/*"]}]}`)})
			return err
		},
		"DeleteBucketPolicy": func() error {
			_, err := c.DeleteBucketPolicy(ctx, &s3.DeleteBucketPolicyInput{Bucket: &b})
			return err
		},
		"PutBucketVersioning": func() error {
			_, err := c.PutBucketVersioning(ctx, &s3.PutBucketVersioningInput{Bucket: &b,
				VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusSuspended}})
			return err
		},
		"PutObjectLockConfiguration": func() error {
			_, err := c.PutObjectLockConfiguration(ctx, &s3.PutObjectLockConfigurationInput{Bucket: &b,
				ObjectLockConfiguration: &types.ObjectLockConfiguration{ObjectLockEnabled: types.ObjectLockEnabledEnabled}})
			return err
		},
		"DeleteBucket": func() error {
			_, err := c.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: &b})
			return err
		},
		"CreateBucket": func() error {
			_, err := c.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: key("another-" + b)})
			return err
		},
	}
}

func TestStrangersAreRefused(t *testing.T) {
	srv := start(t, t.TempDir())
	root := client(srv.Endpoint(), "root")
	put(t, root, "exports", "a", "one")

	_, err := client(srv.Endpoint(), "nobody").GetObject(t.Context(), &s3.GetObjectInput{Bucket: key("exports"), Key: key("a")})
	requireCode(t, "InvalidAccessKeyId", err)

	res, err := http.Get(srv.Endpoint() + "/exports/a") // unsigned
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusForbidden, res.StatusCode)

	// A bucket that is not in the Config is closed to the reader.
	_, err = root.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: key("private")})
	require.NoError(t, err)
	put(t, root, "private", "a", "one")
	_, err = client(srv.Endpoint(), "reader").GetObject(t.Context(), &s3.GetObjectInput{Bucket: key("private"), Key: key("a")})
	requireCode(t, "AccessDenied", err)
}

// denied gives the error entry of a bulk answer the form of an S3 error.
type denied struct{ code string }

func (d *denied) Error() string                 { return d.code }
func (d *denied) ErrorCode() string             { return d.code }
func (d *denied) ErrorMessage() string          { return d.code }
func (d *denied) ErrorFault() smithy.ErrorFault { return smithy.FaultClient }
