package integration

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/integration"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// ListDeliveries answers Query.listDeliveries. What came in may be anybody's words, so it is for owners and admins.
func ListDeliveries(env *handler.Env) lambda.Handler {
	db, key := env.DB(), env.PageKey()
	type args struct {
		page.Request
		Filter integration.DeliveryFilter `json:"filter"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (page.Page[integration.Delivery], error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return page.Page[integration.Delivery]{}, err
		}
		return page.List(key, a.Request, integration.Delivery.Cursor, func(after *integration.DeliveryCursor, limit int) ([]integration.Delivery, error) {
			return integration.Deliveries(ctx, db.In(caller.TenantID), a.Filter, after, limit)
		}, caller.TenantID, "listDeliveries", a.Filter)
	})
}
