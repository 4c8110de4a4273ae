// Package invoke starts a function of the platform without waiting for it. pkg/cloud/awslambda does it in the cloud, pkg/local on one machine.
package invoke

import "context"

// Invoker hands a payload to a function, by its manifest name. A nil error means that the platform has the payload; it may still be lost
// or arrive twice, so what must happen is also found by a sweep, and what must happen once is guarded by the database.
type Invoker interface {
	Invoke(ctx context.Context, function string, payload any) error
}
