package device

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/device"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// ListDevices answers Query.listDevices.
func ListDevices(env *handler.Env) lambda.Handler {
	db, key := env.DB(), env.PageKey()
	return handler.Resolver(func(ctx context.Context, r page.Request) (page.Page[device.Device], error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return page.Page[device.Device]{}, err
		}
		return page.List(key, r, device.Device.Cursor, func(after *device.Cursor, limit int) ([]device.Device, error) {
			return device.List(ctx, db.In(caller.TenantID), caller.UserID, after, limit)
		}, caller.TenantID, caller.UserID, "devices")
	})
}
