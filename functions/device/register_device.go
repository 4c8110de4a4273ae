package device

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/device"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// RegisterDevice answers Mutation.registerDevice.
func RegisterDevice(env *handler.Env) lambda.Handler {
	devices := device.Devices{DB: env.DB(), Push: env.PushDevices()}
	type args struct {
		Input struct {
			Platform device.Platform `json:"platform"`
			Token    string          `json:"token"`
		} `json:"input"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (device.Device, error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return device.Device{}, err
		}
		return devices.Register(ctx, caller, a.Input.Platform, a.Input.Token)
	})
}
