package device

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/device"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// UnregisterDevice answers Mutation.unregisterDevice.
func UnregisterDevice(env *handler.Env) lambda.Handler {
	devices := device.Devices{DB: env.DB(), Push: env.PushDevices()}
	type args struct {
		ID string `json:"id"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (device.Device, error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return device.Device{}, err
		}
		return devices.Unregister(ctx, caller, a.ID)
	})
}
