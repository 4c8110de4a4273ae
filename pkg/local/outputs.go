package local

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
}
