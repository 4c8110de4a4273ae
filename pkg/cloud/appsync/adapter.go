package appsync

import (
	"sync"

	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/publish"
)

// Publish is the adapter for the need publish.
func Publish(a *cloud.Account, p *handler.Ports) {
	p.Publish = sync.OnceValue(func() publish.Publisher {
		return cloud.Must(New(Config{URL: cloud.Required("APPSYNC_URL", a.AppSyncURL), Region: a.Region, Credentials: a.AWS().Credentials}))
	})
}
