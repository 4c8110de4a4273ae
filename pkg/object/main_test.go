package object_test

import (
	"context"
	"testing"

	"github.com/agentplatform/agentplatform/pkg/local/bucket"
	"github.com/agentplatform/agentplatform/pkg/object"
	"github.com/agentplatform/agentplatform/test/moto"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"
)

func TestContractLocal(t *testing.T) {
	srv, err := bucket.Start(t.Context(), bucket.Config{
		Dir: t.TempDir(), RootKey: "root", RootSecret: "root-secret", ReaderKey: "reader", ReaderSecret: "reader-secret",
		Buckets: []bucket.Bucket{{Name: locked, ObjectLock: true}, {Name: plain}},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, srv.Stop(context.Background())) })
	testContract(t, at(srv.Endpoint(), false))
}

func TestContractMoto(t *testing.T) {
	s := at(moto.Start(t), true)
	for _, in := range []*s3.CreateBucketInput{
		{Bucket: aws.String(locked), ObjectLockEnabledForBucket: aws.Bool(true)},
		{Bucket: aws.String(plain)},
	} {
		_, err := s.raw.CreateBucket(t.Context(), in)
		require.NoError(t, err)
	}
	testContract(t, s)
}

func at(endpoint string, limited bool) storage {
	return storage{
		store: object.New(object.Config{Region: "us-east-1", Endpoint: endpoint, AccessKey: "root", Secret: "root-secret", PathStyle: true}),
		raw: s3.New(s3.Options{Region: "us-east-1", BaseEndpoint: &endpoint, UsePathStyle: true,
			Credentials: credentials.NewStaticCredentialsProvider("root", "root-secret", "")}),
		limited: limited,
	}
}
