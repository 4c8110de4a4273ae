// Package object is the port to object storage: the S3 API of AWS in the cloud and of pkg/local/bucket on one machine,
// both through the same client. The local adapter is the Endpoint in the Config, nothing else differs.
//
// What holds:
//
//   - A Put that returns nil is complete; one that fails may have been done. S3 is durable then; the local server
//     survives the death of its process, not of the machine.
//
//   - With IfNoneMatch at most one of any number of writers of a key succeeds; the others get ErrExists.
//
//   - With RetainUntil the version written is under a COMPLIANCE lock: nobody deletes it or shortens the lock before
//     that time. An overwrite or a delete still adds a newer version or a delete marker: readers who need the locked
//     version must look at the versions.
//
//   - What a multipart Upload has not completed is not there: no listing and no read sees it. A COMPLIANCE lock is for
//     Put alone.
//
// Errors: a missing key is fault.Missing("object"), if the credentials may list the bucket (AWS hides it from others
// as access denied). Everything else (no such bucket, access denied, the network) is a deployment's fault and not the
// caller's: it carries no fault.Error, so callers of the API see an InternalError.
package object

import (
	"errors"
	"fmt"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
)

var (
	// ErrExists is a Put with IfNoneMatch whose key was there already. It may be there by this very Put: a first
	// attempt whose answer was lost. Who must know compares what is stored.
	ErrExists = errors.New("object: key already exists")

	// ErrTooLarge is a Get of an object over the limit; nothing of it is returned.
	ErrTooLarge = errors.New("object: larger than the limit")

	// ErrNoUpload is an Upload that was completed or aborted, or never begun.
	ErrNoUpload = errors.New("object: no such upload")
)

// Store is an object storage. It is safe for concurrent use and holds nothing that needs closing.
type Store struct {
	client  *s3.Client
	presign *s3.PresignClient
}

// In is one bucket of the store. It does no I/O: a bucket that does not exist shows at the first use.
func (s *Store) In(bucket string) *Bucket { return &Bucket{s, bucket} }

// failed gives an S3 error its meaning here.
func (b *Bucket) failed(verb, key string, err error) error {
	var api smithy.APIError
	if errors.As(err, &api) {
		switch api.ErrorCode() {
		case "NoSuchKey", "NoSuchVersion":
			return fault.Missing("object")
		case "PreconditionFailed":
			return fmt.Errorf("object: %s %s/%s: %w", verb, b.name, key, ErrExists)
		case "NoSuchUpload":
			return fmt.Errorf("object: %s %s/%s: %w", verb, b.name, key, ErrNoUpload)
		}
	}
	return fmt.Errorf("object: %s %s/%s: %w", verb, b.name, key, err)
}
