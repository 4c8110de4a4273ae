package object

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
)

// Compliance is the lock mode that nobody can lift, as Lock reports it.
const Compliance = string(types.ObjectLockModeCompliance)

// Version is one version, or one delete marker, of a key.
type Version struct {
	Key          string
	ID           string // "null" in a bucket without versions
	Size         int64  // bytes
	Modified     time.Time
	ETag         string // without quotes; empty for a delete marker
	IsLatest     bool   // what a Get without a version sees
	DeleteMarker bool
}

// Versions yields every version and every delete marker of the keys that start with prefix and sort (by bytes) after
// after, in key order, of one key the latest first; both may be empty. It asks for pages as the loop goes on; an error
// is yielded once and ends it.
func (b *Bucket) Versions(ctx context.Context, prefix, after string) iter.Seq2[Version, error] {
	return func(yield func(Version, error) bool) {
		in := &s3.ListObjectVersionsInput{Bucket: &b.name, Prefix: &prefix, EncodingType: types.EncodingTypeUrl}
		if after != "" {
			in.KeyMarker = &after
		}
		var held []Version // of the last key of a page, which the next page may go on with
		for {
			page, err := b.store.client.ListObjectVersions(ctx, in)
			if err != nil {
				yield(Version{}, b.failed("list versions", prefix, err))
				return
			}
			now, err := versions(page)
			if err != nil {
				yield(Version{}, b.failed("list versions", prefix, err))
				return
			}
			found := slices.Concat(held, now)
			slices.SortStableFunc(found, inOrder)
			cut := len(found)
			if aws.ToBool(page.IsTruncated) {
				for cut > 0 && found[cut-1].Key == found[len(found)-1].Key {
					cut--
				}
			}
			for _, v := range found[:cut] {
				if v.Key <= after { // not all implementations skip the marker's own key
					continue
				}
				if !yield(v, nil) {
					return
				}
			}
			if !aws.ToBool(page.IsTruncated) {
				return
			}
			held = slices.Clone(found[cut:])
			next, err := spelled(page.NextKeyMarker, page.EncodingType)
			if err == nil && (*next == "" || *next == aws.ToString(in.KeyMarker) && aws.ToString(page.NextVersionIdMarker) == aws.ToString(in.VersionIdMarker)) {
				err = errors.New("the storage says that there is more, and not from where on")
			}
			if err != nil {
				yield(Version{}, b.failed("list versions", prefix, err))
				return
			}
			in.KeyMarker, in.VersionIdMarker = next, page.NextVersionIdMarker
		}
	}
}

// versions is a page with its two lists as one, not in order.
func versions(page *s3.ListObjectVersionsOutput) ([]Version, error) {
	found := make([]Version, 0, len(page.Versions)+len(page.DeleteMarkers))
	for _, v := range page.Versions {
		key, err := spelled(v.Key, page.EncodingType)
		if err != nil {
			return nil, err
		}
		found = append(found, Version{Key: *key, ID: aws.ToString(v.VersionId), Size: aws.ToInt64(v.Size), Modified: aws.ToTime(v.LastModified),
			ETag: strings.Trim(aws.ToString(v.ETag), `"`), IsLatest: aws.ToBool(v.IsLatest)})
	}
	for _, m := range page.DeleteMarkers {
		key, err := spelled(m.Key, page.EncodingType)
		if err != nil {
			return nil, err
		}
		found = append(found, Version{Key: *key, ID: aws.ToString(m.VersionId), Modified: aws.ToTime(m.LastModified),
			IsLatest: aws.ToBool(m.IsLatest), DeleteMarker: true})
	}
	return found, nil
}

// spelled is a key of a listing as it is. Listings are asked for in URL encoding: S3 writes control characters of a key as XML that no reader may take, so that whoever
// can add one object could make the bucket unreadable. What the answer does not say is encoded is not.
func spelled(key *string, encoding types.EncodingType) (*string, error) {
	text := aws.ToString(key)
	if encoding != types.EncodingTypeUrl {
		return &text, nil
	}
	text, err := url.QueryUnescape(text) // S3 writes a space as +
	return &text, err
}

func inOrder(a, b Version) int {
	latest := func(v Version) int {
		if v.IsLatest {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(latest(a), latest(b)), b.Modified.Compare(a.Modified))
}

// Lock is the lock of one version: Compliance or "GOVERNANCE", and until when; an empty mode is no lock. An empty version
// is the current one.
func (b *Bucket) Lock(ctx context.Context, key, version string) (mode string, retainUntil time.Time, err error) {
	in := &s3.GetObjectRetentionInput{Bucket: &b.name, Key: &key}
	if version != "" {
		in.VersionId = &version
	}
	out, err := b.store.client.GetObjectRetention(ctx, in)
	var api smithy.APIError
	if errors.As(err, &api) && api.ErrorCode() == "NoSuchObjectLockConfiguration" {
		return "", time.Time{}, nil
	}
	if err != nil {
		return "", time.Time{}, b.failed("read the lock of", key, err)
	}
	if out.Retention == nil {
		return "", time.Time{}, nil
	}
	return string(out.Retention.Mode), aws.ToTime(out.Retention.RetainUntilDate), nil
}

// Retain puts a COMPLIANCE lock until then on a version that is there, for the repair of a Put that died between the
// object and its lock. It never shortens a lock: the storage refuses.
func (b *Bucket) Retain(ctx context.Context, key, version string, until time.Time) error {
	in := &s3.PutObjectRetentionInput{Bucket: &b.name, Key: &key,
		Retention: &types.ObjectLockRetention{Mode: types.ObjectLockRetentionModeCompliance, RetainUntilDate: &until}}
	if version != "" {
		in.VersionId = &version
	}
	if _, err := b.store.client.PutObjectRetention(ctx, in); err != nil {
		return b.failed("lock", key, err)
	}
	return nil
}
