package object

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Config says which object storage to use and as whom.
type Config struct {
	Region    string // region of the buckets; required
	Endpoint  string // base URL of another S3 implementation; empty = AWS
	AccessKey string // access key id; empty = Credentials
	Secret    string // its secret; ignored without AccessKey
	// Credentials say who asks, where that changes: a role. Required unless AccessKey is set; ignored then.
	Credentials aws.CredentialsProvider
	PathStyle   bool // bucket in the path instead of the host name; local servers need it
}

// New makes a Store. It does no I/O: wrong credentials or an unreachable endpoint show at the first use.
func New(cfg Config) *Store {
	opts := s3.Options{
		Region:       cfg.Region,
		UsePathStyle: cfg.PathStyle,
		Credentials:  cfg.Credentials,
		// Both ends check what travels, but for an Open; s3.New on its own leaves this off.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenSupported,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenSupported,
		// A key that another conditional write is just making is 409 in AWS: once that one is done, the repeat
		// tells whether it is there (412).
		Retryer: retry.AddWithErrorCodes(retry.NewStandard(), "ConditionalRequestConflict"),
	}
	if cfg.Endpoint != "" {
		opts.BaseEndpoint = &cfg.Endpoint
	}
	if cfg.AccessKey != "" {
		opts.Credentials = credentials.NewStaticCredentialsProvider(cfg.AccessKey, cfg.Secret, "")
	}
	if opts.Credentials == nil {
		opts.Credentials = nobody
	}
	client := s3.New(opts)
	return &Store{client: client, presign: s3.NewPresignClient(client, func(o *s3.PresignOptions) {
		// A checksum request would be one more signed header, which a browser does not send.
		o.ClientOptions = append(o.ClientOptions, func(o *s3.Options) {
			o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		})
	})}
}

// nobody is who asks when a Config does not say it.
var nobody = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
	return aws.Credentials{}, errors.New("object: no credentials")
})
