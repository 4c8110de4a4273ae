// Package invoke is how the platform's functions reach one another: Invoker starts one, Caller waits for its answer. pkg/cloud/awslambda does it in the
// cloud, pkg/local on one machine.
package invoke

import "context"

// Invoker hands a payload to a function, by its manifest name. A nil error means that the platform has the payload; it may still be lost
// or arrive twice, so what must happen is also found by a sweep, and what must happen once is guarded by the database.
type Invoker interface {
	Invoke(ctx context.Context, function string, payload any) error
}

// Caller asks a function, by its manifest name, and waits for its answer. An error says nothing about what the function has done before it: nobody asks
// a second time by himself.
type Caller interface {
	Call(ctx context.Context, function string, payload []byte) ([]byte, error)
}
