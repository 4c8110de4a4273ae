package main

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/agentplatform/agentplatform/test/standin"
)

// free does what somebody who destroys a tier has to do before: the states' bucket is emptied by hand, and the write-once bucket is left to stay, if
// anything is in it.
func (r *rehearsal) free(ctx context.Context, tier string) error {
	client := s3.New(s3.Options{Region: region, BaseEndpoint: aws.String(r.aws.URL), UsePathStyle: true, RetryMaxAttempts: 1, Credentials: credentials.NewStaticCredentialsProvider("none", "none", "")})
	switch tier {
	case "state":
		return empty(ctx, client, prefix+"-state-"+standin.Account)
	case "data":
		bucket := prefix + "-audit-" + standin.Account
		list, err := client.ListObjectVersions(ctx, &s3.ListObjectVersionsInput{Bucket: &bucket})
		if err != nil || len(list.Versions) == 0 {
			return err
		}
		fmt.Fprintf(r.out, "data: %d objects in %s are locked, and stay: terraform state rm module.audit\n", len(list.Versions), bucket)
		_, err = r.run(ctx, "data", "state", "rm", "module.audit")
		return err
	}
	return nil
}

func empty(ctx context.Context, client *s3.Client, bucket string) error {
	for pages := s3.NewListObjectVersionsPaginator(client, &s3.ListObjectVersionsInput{Bucket: &bucket}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		var all []types.ObjectIdentifier
		for _, v := range page.Versions {
			all = append(all, types.ObjectIdentifier{Key: v.Key, VersionId: v.VersionId})
		}
		for _, m := range page.DeleteMarkers {
			all = append(all, types.ObjectIdentifier{Key: m.Key, VersionId: m.VersionId})
		}
		if len(all) == 0 {
			return nil
		}
		if _, err := client.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &bucket, Delete: &types.Delete{Objects: all}}); err != nil {
			return err
		}
	}
	return nil
}
