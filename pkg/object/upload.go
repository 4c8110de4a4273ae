package object

import (
	"bytes"
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// MinPart is the least size of every part of an Upload but the last, in bytes; an Upload has at most MaxParts.
const (
	MinPart  = 5 << 20
	MaxParts = 10_000
)

// Upload is an object that is written in parts. It lives in the storage until it is completed or aborted: whoever knows
// its key and id goes on with it.
type Upload struct {
	bucket *Bucket
	key    string
	id     string
}

// Part is one part that the storage has.
type Part struct {
	Number int32
	Size   int64 // bytes
	etag   string
	crc32  string // the storage wants it back at the end, if it has it
}

// StartUpload begins an Upload of key. An empty contentType is application/octet-stream.
func (b *Bucket) StartUpload(ctx context.Context, key, contentType string) (*Upload, error) {
	in := &s3.CreateMultipartUploadInput{Bucket: &b.name, Key: &key}
	if contentType != "" {
		in.ContentType = &contentType
	}
	out, err := b.store.client.CreateMultipartUpload(ctx, in)
	if err != nil {
		return nil, b.failed("start an upload of", key, err)
	}
	return b.ResumeUpload(key, aws.ToString(out.UploadId)), nil
}

// ResumeUpload goes on with the Upload of that id. It does no I/O: one that is no more shows at the first use.
func (b *Bucket) ResumeUpload(key, id string) *Upload { return &Upload{b, key, id} }

// ID names the Upload, with its key.
func (u *Upload) ID() string { return u.id }

// Part writes one part, from 1; a part that is there already is replaced.
func (u *Upload) Part(ctx context.Context, number int32, body []byte) error {
	_, err := u.bucket.store.client.UploadPart(ctx, &s3.UploadPartInput{Bucket: &u.bucket.name, Key: &u.key, UploadId: &u.id, PartNumber: &number, Body: bytes.NewReader(body)})
	if err != nil {
		return u.bucket.failed("upload a part of", u.key, err)
	}
	return nil
}

// Parts are the parts that the storage has, in order.
func (u *Upload) Parts(ctx context.Context) ([]Part, error) {
	var parts []Part
	pages := s3.NewListPartsPaginator(u.bucket.store.client, &s3.ListPartsInput{Bucket: &u.bucket.name, Key: &u.key, UploadId: &u.id})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, u.bucket.failed("list the parts of", u.key, err)
		}
		for _, p := range page.Parts {
			parts = append(parts, Part{aws.ToInt32(p.PartNumber), aws.ToInt64(p.Size), aws.ToString(p.ETag), aws.ToString(p.ChecksumCRC32)})
		}
	}
	return parts, nil
}

// Complete makes the object of these parts, which Parts told. Parts that are not among them are dropped.
func (u *Upload) Complete(ctx context.Context, parts []Part) error {
	done := make([]types.CompletedPart, len(parts))
	for i, p := range parts {
		done[i] = types.CompletedPart{PartNumber: &p.Number, ETag: &p.etag}
		if p.crc32 != "" {
			done[i].ChecksumCRC32 = &p.crc32
		}
	}
	_, err := u.bucket.store.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{Bucket: &u.bucket.name, Key: &u.key, UploadId: &u.id,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: done}})
	if err != nil {
		return u.bucket.failed("complete the upload of", u.key, err)
	}
	return nil
}

// Abort drops the Upload and its parts. One that is no more is no error.
func (u *Upload) Abort(ctx context.Context) error {
	_, err := u.bucket.store.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &u.bucket.name, Key: &u.key, UploadId: &u.id})
	if err == nil {
		return nil
	}
	if err = u.bucket.failed("abort the upload of", u.key, err); errors.Is(err, ErrNoUpload) {
		return nil
	}
	return err
}
