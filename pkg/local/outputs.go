package local

import (
	"fmt"
	"strings"
)

// Outputs is what a client needs to know: GET /local/outputs.json.
type Outputs struct {
	Region            string `json:"region"`
	APIURL            string `json:"api_url"`
	AppSyncURL        string `json:"appsync_url"`
	RealtimeURL       string `json:"realtime_url"`
	WebAppURL         string `json:"web_app_url"`
	UserPoolID        string `json:"user_pool_id"`
	ClientID          string `json:"client_id"`
	CAFile            string `json:"ca_file"`
	S3Endpoint        string `json:"s3_endpoint"`
	S3AccessKeyID     string `json:"s3_access_key_id"` // reads only
	S3SecretAccessKey string `json:"s3_secret_access_key"`
	AnchorBucket      string `json:"anchor_bucket"`
	ExportsBucket     string `json:"exports_bucket"`
	DatabaseReaderURL string `json:"database_reader_url"` // reads only
	AnchorPublicKey   string `json:"anchor_public_key_file"`
	AnchorOrigin      string `json:"anchor_origin"`
	DeadLetters       string `json:"dead_letters_dir"` // a file each
}

// verifyEnv is what audit-verifier reads from its environment, for a shell to source: GET /local/verify.env.
func (o Outputs) verifyEnv() string {
	var b strings.Builder
	for _, v := range [][2]string{
		{"AWS_REGION", o.Region}, {"AWS_ENDPOINT_URL_S3", o.S3Endpoint}, {"AWS_ACCESS_KEY_ID", o.S3AccessKeyID}, {"AWS_SECRET_ACCESS_KEY", o.S3SecretAccessKey},
		{"DATABASE_URL", o.DatabaseReaderURL}, {"ANCHOR_BUCKET", o.AnchorBucket}, {"ANCHOR_PUBLIC_KEY", o.AnchorPublicKey}, {"ANCHOR_ORIGIN", o.AnchorOrigin},
	} {
		fmt.Fprintf(&b, "export %s='%s'\n", v[0], strings.ReplaceAll(v[1], "'", `'\''`))
	}
	return b.String()
}
