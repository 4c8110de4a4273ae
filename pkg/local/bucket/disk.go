package bucket

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/versity/versitygw/auth"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/s3err"
)

// ioBuffer is the size of the copy buffer of one request in bytes; the backend's default of 1 MiB is for big files.
const ioBuffer = 64 << 10

// openDisk opens the directory as an S3 backend. It leaves the process in <dir>/objects (see the package comment).
func openDisk(dir string) (*posix.Posix, error) {
	objects, versions, attrs := filepath.Join(dir, "objects"), filepath.Join(dir, "versions"), filepath.Join(dir, "meta")
	for _, d := range []string{objects, versions, attrs} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, fmt.Errorf("bucket: %w", err)
		}
	}
	sidecar, err := meta.NewSideCar(attrs)
	if err != nil {
		return nil, fmt.Errorf("bucket: %w", err)
	}
	opts := posix.PosixOpts{IOBufferSize: ioBuffer, CopyObjectThreshold: 5 << 30}
	opts.SetNewDirPerm(0o700)
	opts.SetNewFilePerm(0o600)
	disk, err := posix.New(objects, sidecar, opts)
	if err != nil {
		return nil, fmt.Errorf("bucket: %w", err)
	}
	// PosixOpts.VersioningDir would do the same, but then posix.New prints a line on the standard output of the whole
	// process, and swapping os.Stdout around it would race with every other writer.
	dirOfVersions, err := hidden[string](disk, "versioningDir")
	if err != nil {
		disk.Shutdown()
		return nil, err
	}
	*dirOfVersions = versions
	return disk, nil
}

// ensure makes b exist as described; it is safe to repeat, also after a start that died half-way.
func ensure(ctx context.Context, disk *posix.Posix, b Bucket, cfg Config) error {
	acl, err := disk.GetBucketAcl(ctx, &s3.GetBucketAclInput{Bucket: &b.Name})
	switch {
	case errors.Is(err, s3err.GetAPIError(s3err.ErrNoSuchBucket)):
		err = create(ctx, disk, b, cfg)
	case err == nil && len(acl) == 0:
		// A create that died after its mkdir: os.Remove refuses if there is anything in it.
		if err = os.Remove(b.Name); err == nil {
			err = create(ctx, disk, b, cfg)
		}
	}
	if err == nil && (b.Versioning || b.ObjectLock) {
		err = disk.PutBucketVersioning(ctx, b.Name, types.BucketVersioningStatusEnabled)
	}
	if err == nil && b.ObjectLock {
		err = lockable(ctx, disk, b.Name)
	}
	if err == nil {
		err = admitReader(ctx, disk, b.Name, cfg.ReaderKey)
	}
	if err != nil {
		return fmt.Errorf("bucket: preparing %q: %w", b.Name, err)
	}
	return nil
}

func create(ctx context.Context, disk *posix.Posix, b Bucket, cfg Config) error {
	acl, err := json.Marshal(auth.ACL{Owner: cfg.RootKey, Grantees: []auth.Grantee{
		{Permission: auth.PermissionFullControl, Access: cfg.RootKey, Type: types.TypeCanonicalUser},
	}})
	if err != nil {
		return err
	}
	return disk.CreateBucket(ctx, &s3.CreateBucketInput{
		Bucket:                     &b.Name,
		ObjectOwnership:            types.ObjectOwnershipBucketOwnerEnforced,
		ObjectLockEnabledForBucket: &b.ObjectLock,
		CreateBucketConfiguration:  &types.CreateBucketConfiguration{},
	}, acl)
}

// lockable turns object lock on where it is off, and leaves a lock configuration that is there as it is.
func lockable(ctx context.Context, disk *posix.Posix, name string) error {
	_, err := disk.GetObjectLockConfiguration(ctx, name)
	if !errors.Is(err, s3err.GetAPIError(s3err.ErrObjectLockConfigurationNotFound)) {
		return err
	}
	now := time.Now()
	lock, err := json.Marshal(auth.BucketLockConfig{Enabled: true, CreatedAt: &now})
	if err != nil {
		return err
	}
	return disk.PutObjectLockConfiguration(ctx, name, lock)
}

func admitReader(ctx context.Context, disk *posix.Posix, name, reader string) error {
	want, err := readerPolicy(name, reader)
	if err != nil {
		return err
	}
	have, err := disk.GetBucketPolicy(ctx, name)
	if err == nil && bytes.Equal(have, want) {
		return nil
	}
	if err != nil && !errors.Is(err, s3err.GetAPIError(s3err.ErrNoSuchBucketPolicy)) {
		return err
	}
	return disk.PutBucketPolicy(ctx, name, want)
}
