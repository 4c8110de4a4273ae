// Package s3 is Amazon S3 behind package object: Objects puts it behind the needs object:…
package s3

import (
	"cmp"
	"sync"

	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/object"
)

// Objects is the adapter for the needs object:…. With an endpoint of one's own, buckets are in the path and not in the host's name.
func Objects(a *cloud.Account, p *handler.Ports) {
	endpoint := cmp.Or(a.S3Endpoint, a.Endpoint)
	store := sync.OnceValue(func() *object.Store {
		return object.New(object.Config{Region: a.Region, Endpoint: endpoint, PathStyle: endpoint != "", Credentials: a.AWS().Credentials})
	})
	p.Audit = func() *object.Bucket { return store().In(cloud.Required("ANCHOR_BUCKET", a.AnchorBucket)) }
	p.Exports = func() *object.Bucket { return store().In(cloud.Required("EXPORTS_BUCKET", a.ExportsBucket)) }
	p.Received = func() *object.Bucket { return store().In(cloud.Required("MAIL_BUCKET", a.MailBucket)) }
}
