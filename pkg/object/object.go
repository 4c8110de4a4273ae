// Package object is the port to object storage: the S3 API of AWS in the cloud and of pkg/local/bucket on one machine,
// both through the same client. The local adapter is the Endpoint in the Config, nothing else differs.
//
// What holds:
//   - A Put that returns nil is complete; one that fails may have been done. S3 is durable then; the local server
//     survives the death of its process, not of the machine.
//   - With IfNoneMatch at most one of any number of writers of a key succeeds; the others get ErrExists.
//   - With RetainUntil the version written is under a COMPLIANCE lock: nobody deletes it or shortens the lock before
//     that time. An overwrite or a delete still adds a newer version or a delete marker: readers who need the locked
//     version must look at the versions.
//
// Errors: a missing key is fault.Missing("object"), if the credentials may list the bucket (AWS hides it from others
// as access denied). Everything else (no such bucket, access denied, the network) is a deployment's fault and not the
// caller's: it carries no fault.Error, so callers of the API see an InternalError.
package object

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
)

var (
	// ErrExists is a Put with IfNoneMatch whose key was there already. It may be there by this very Put: a first
	// attempt whose answer was lost. Who must know compares what is stored.
	ErrExists = errors.New("object: key already exists")

	// ErrTooLarge is a Get of an object over the limit; nothing of it is returned.
	ErrTooLarge = errors.New("object: larger than the limit")
)

// Store reads and writes objects. It is safe for concurrent use and holds nothing that needs closing.
type Store struct {
	client  *s3.Client
	presign *s3.PresignClient
}

// PutOptions are the properties of a Put.
type PutOptions struct {
	ContentType string    // media type; default application/octet-stream
	IfNoneMatch bool      // write only if the key has no current version, else ErrExists
	RetainUntil time.Time // COMPLIANCE lock until then (the bucket must allow it); zero = no lock
}

// Object is one key in a listing.
type Object struct {
	Key      string
	Size     int64 // bytes
	Modified time.Time
}

// Put writes body under key and returns the id of the version written, empty in a bucket without versions. body is
// read from its current position, more than once when an attempt is repeated.
func (s *Store) Put(ctx context.Context, bucket, key string, body io.ReadSeeker, opts PutOptions) (version string, err error) {
	in := &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: body}
	if opts.ContentType != "" {
		in.ContentType = &opts.ContentType
	}
	if opts.IfNoneMatch {
		in.IfNoneMatch = aws.String("*")
	}
	if !opts.RetainUntil.IsZero() {
		in.ObjectLockMode = types.ObjectLockModeCompliance
		in.ObjectLockRetainUntilDate = &opts.RetainUntil
		in.ChecksumAlgorithm = types.ChecksumAlgorithmSha256 // S3 refuses a locked object without a checksum
	}
	out, err := s.client.PutObject(ctx, in)
	if err != nil {
		return "", failed("put", bucket, key, err)
	}
	return aws.ToString(out.VersionId), nil
}

// Get reads the current version of key, at most limit bytes: a larger object is ErrTooLarge.
func (s *Store) Get(ctx context.Context, bucket, key string, limit int64) ([]byte, error) {
	out, err := s.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: &key})
	if err != nil {
		return nil, failed("get", bucket, key, err)
	}
	defer out.Body.Close()
	if aws.ToInt64(out.ContentLength) > limit {
		return nil, fmt.Errorf("object: get %s/%s: %w", bucket, key, ErrTooLarge)
	}
	b, err := io.ReadAll(io.LimitReader(out.Body, limit+1))
	if err != nil {
		return nil, failed("get", bucket, key, err)
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("object: get %s/%s: %w", bucket, key, ErrTooLarge)
	}
	return b, nil
}

// List yields the current objects whose key starts with prefix and sorts (by bytes) after after, in key order; both
// may be empty. It asks for pages as the loop goes on; an error is yielded once and ends it.
func (s *Store) List(ctx context.Context, bucket, prefix, after string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		in := &s3.ListObjectsV2Input{Bucket: &bucket, Prefix: &prefix}
		if after != "" {
			in.StartAfter = &after
		}
		pages := s3.NewListObjectsV2Paginator(s.client, in)
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield(Object{}, failed("list", bucket, prefix, err))
				return
			}
			for _, o := range page.Contents {
				if !yield(Object{aws.ToString(o.Key), aws.ToInt64(o.Size), aws.ToTime(o.LastModified)}, nil) {
					return
				}
			}
		}
	}
}

// Presign makes a URL that reads key by a plain GET until validity (at most 7 days) has passed. It asks nobody: a
// missing key shows when the URL is used. A URL signed by temporary credentials dies with them if that is sooner.
func (s *Store) Presign(ctx context.Context, bucket, key string, validity time.Duration) (string, error) {
	req, err := s.presign.PresignGetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: &key}, s3.WithPresignExpires(validity))
	if err != nil {
		return "", failed("presign", bucket, key, err)
	}
	return req.URL, nil
}

// failed gives an S3 error its meaning here.
func failed(verb, bucket, key string, err error) error {
	var api smithy.APIError
	if errors.As(err, &api) {
		switch api.ErrorCode() {
		case "NoSuchKey":
			return fault.Missing("object")
		case "PreconditionFailed":
			return fmt.Errorf("object: %s %s/%s: %w", verb, bucket, key, ErrExists)
		}
	}
	return fmt.Errorf("object: %s %s/%s: %w", verb, bucket, key, err)
}
