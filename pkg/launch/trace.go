//go:build !notrace

package launch

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-xray-sdk-go/v2/xray"
)

// traced puts one X-Ray segment around each invocation. With -tags notrace there is none, and a binary is some 2 MB smaller.
type traced struct {
	name string
	next lambda.Handler
}

func (t traced) Invoke(ctx context.Context, payload []byte) (answer []byte, err error) {
	ctx, segment := xray.BeginSubsegment(ctx, t.name)
	if segment != nil {
		defer func() { segment.Close(err) }()
	}
	answer, err = t.next.Invoke(ctx, payload)
	return answer, err
}

func trace(name string, next lambda.Handler) lambda.Handler { return traced{name, next} }
