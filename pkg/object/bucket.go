package object

import (
	"context"
	"fmt"
	"io"
	"iter"
	"mime"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// Bucket reads and writes the objects of one bucket. It is safe for concurrent use and holds nothing that needs closing.
type Bucket struct {
	store *Store
	name  string
}

// Name is the bucket's name.
func (b *Bucket) Name() string { return b.name }

// PutOptions are the properties of a Put.
type PutOptions struct {
	ContentType string    // media type; default application/octet-stream
	IfNoneMatch bool      // write only if the key has no current version, else ErrExists
	RetainUntil time.Time // COMPLIANCE lock until then (the bucket must allow it); zero = no lock
}

// Put writes body under key and returns the id of the version written, empty in a bucket without versions. body is
// read from its current position, more than once when an attempt is repeated.
func (b *Bucket) Put(ctx context.Context, key string, body io.ReadSeeker, opts PutOptions) (version string, err error) {
	in := &s3.PutObjectInput{Bucket: &b.name, Key: &key, Body: body}
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
	out, err := b.store.client.PutObject(ctx, in)
	if err != nil {
		return "", b.failed("put", key, err)
	}
	return aws.ToString(out.VersionId), nil
}

// Get reads the current version of key, at most limit bytes: a larger object is ErrTooLarge.
func (b *Bucket) Get(ctx context.Context, key string, limit int64) ([]byte, error) {
	return b.GetVersion(ctx, key, "", limit)
}

// GetVersion reads one version of key, at most limit bytes: a larger one is ErrTooLarge. An empty version is the
// current one.
func (b *Bucket) GetVersion(ctx context.Context, key, version string, limit int64) ([]byte, error) {
	body, size, err := b.open(ctx, key, version)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	if size > limit {
		return nil, fmt.Errorf("object: get %s/%s: %w", b.name, key, ErrTooLarge)
	}
	text, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err != nil {
		return nil, b.failed("get", key, err)
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("object: get %s/%s: %w", b.name, key, ErrTooLarge)
	}
	return text, nil
}

// Open reads one version of key as a stream, which the caller closes; an empty version is the current one. The size is
// in bytes, as the storage tells it. The storage's checksum is not compared, as Get does: streams are read by those who
// hold every byte to hashes of their own (the ledger and the verifier), and the checksum of a locked object is a second
// SHA-256 over all of it.
func (b *Bucket) Open(ctx context.Context, key, version string) (body io.ReadCloser, size int64, err error) {
	return b.open(ctx, key, version, func(o *s3.Options) {
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	})
}

func (b *Bucket) open(ctx context.Context, key, version string, opts ...func(*s3.Options)) (body io.ReadCloser, size int64, err error) {
	in := &s3.GetObjectInput{Bucket: &b.name, Key: &key}
	if version != "" {
		in.VersionId = &version
	}
	out, err := b.store.client.GetObject(ctx, in, opts...)
	if err != nil {
		return nil, 0, b.failed("get", key, err)
	}
	return out.Body, aws.ToInt64(out.ContentLength), nil
}

// Object is one key in a listing.
type Object struct {
	Key      string
	Size     int64 // bytes
	Modified time.Time
}

// List yields the current objects whose key starts with prefix and sorts (by bytes) after after, in key order; both
// may be empty. It asks for pages as the loop goes on; an error is yielded once and ends it.
func (b *Bucket) List(ctx context.Context, prefix, after string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		in := &s3.ListObjectsV2Input{Bucket: &b.name, Prefix: &prefix, EncodingType: types.EncodingTypeUrl}
		if after != "" {
			in.StartAfter = &after
		}
		pages := s3.NewListObjectsV2Paginator(b.store.client, in)
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield(Object{}, b.failed("list", prefix, err))
				return
			}
			for _, o := range page.Contents {
				key, err := spelled(o.Key, page.EncodingType)
				if err != nil {
					yield(Object{}, b.failed("list", prefix, err))
					return
				}
				if !yield(Object{*key, aws.ToInt64(o.Size), aws.ToTime(o.LastModified)}, nil) {
					return
				}
			}
		}
	}
}

// PresignOptions are the properties of a Presign.
type PresignOptions struct {
	Validity time.Duration // how long the URL is good, at most 7 days; required
	FileName string        // what a browser saves the download as; empty = the browser decides, and may show it instead
}

// Presign makes a URL that reads key by a plain GET until its validity has passed. It asks nobody: a missing key shows
// when the URL is used. A URL signed by temporary credentials dies with them if that is sooner.
func (b *Bucket) Presign(ctx context.Context, key string, opts PresignOptions) (string, error) {
	in := &s3.GetObjectInput{Bucket: &b.name, Key: &key}
	if opts.FileName != "" {
		in.ResponseContentDisposition = aws.String(mime.FormatMediaType("attachment", map[string]string{"filename": opts.FileName}))
	}
	req, err := b.store.presign.PresignGetObject(ctx, in, s3.WithPresignExpires(opts.Validity))
	if err != nil {
		return "", b.failed("presign", key, err)
	}
	return req.URL, nil
}
