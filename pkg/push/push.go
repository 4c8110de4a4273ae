// Package push is the port to notifications on people's mobile devices. In the cloud SNS carries them to Apple's and Google's services (pkg/cloud/sns);
// on one machine they are kept in an outbox (pkg/local/outbox).
//
// What holds, whoever carries them:
//   - A device registers with the token that its platform gave the app, and is an endpoint from then on. The same token is the same endpoint, whoever
//     registers it: a person who signs in on another's device takes it over, so the caller keeps one owner an endpoint.
//   - A notification is checked and made to fit here, before anybody carries it: where its payload would be over MaxPayload bytes in one of the
//     platforms' forms, Body is cut, with … at its end. Title, Data and DedupeID are never cut.
//   - Send is at least once and tells nothing of what the device did. ErrGone means that the endpoint is of no more use: the caller forgets it.
package push

import (
	"context"
	"errors"
)

// Platform is who delivers to a device.
type Platform string

const (
	APNS        Platform = "apns"         // Apple, for apps from the App Store and TestFlight
	APNSSandbox Platform = "apns-sandbox" // Apple, for apps built in Xcode
	FCM         Platform = "fcm"          // Google's Firebase Cloud Messaging
)

const (
	// MaxPayload is how many bytes a notification may have as a platform gets it: 4 KiB, Apple's and Google's limit.
	MaxPayload = 4096
	// MaxUserData is how many bytes of text may be kept with an endpoint, as SNS has it.
	MaxUserData = 2048
	// MaxDedupeID is how many characters a DedupeID may have, as Apple has it.
	MaxDedupeID = 64
)

// Why something was not done; errors.Is finds them. A second try helps with neither.
var (
	// ErrInvalid is about what was given; the *fault.Error in it, a ValidationError, says what.
	ErrInvalid = errors.New("not a push notification, or not a device for one")
	// ErrGone means that nothing reaches the endpoint any more: the app was removed, its token was replaced, or it was unregistered. Forget it; the
	// app registers anew when it is there again.
	ErrGone = errors.New("the endpoint is gone")
)

// Notification is what a device shows, and what its app is given.
type Notification struct {
	Title    string            // Required
	Body     string            // may be cut
	Data     map[string]string // for the app: of APNs beside "aps", of FCM as "data". Names are letters, digits, _ and -, and none of the platforms' own
	DedupeID string            // a notification with the same id takes the place of the one that the device shows; printable ASCII without spaces; empty: none does
}

// Carrier carries what was checked: the adapter of a push service.
type Carrier interface {
	// Register gives the token's endpoint, enabled, with this user data.
	Register(ctx context.Context, platform Platform, token, userData string) (endpoint string, err error)
	// Unregister forgets an endpoint; one that there is not is no error.
	Unregister(ctx context.Context, endpoint string) error
	// Send sends Payload of the endpoint's platform, or ErrGone.
	Send(ctx context.Context, endpoint string, n Notification) error
}

// Pusher sends push notifications. It is safe for concurrent use.
type Pusher struct{ carrier Carrier }

// New is a Pusher by that carrier.
func New(c Carrier) *Pusher { return &Pusher{c} }

// Register makes the device with that token an endpoint, or gives the one that it is, and has it take notifications (again). userData is kept with it in
// the push service, for whoever looks there. A platform that this deployment does not serve is an ErrInvalid.
func (p *Pusher) Register(ctx context.Context, platform Platform, token, userData string) (endpoint string, err error) {
	token, err = checkDevice(platform, token, userData)
	if err != nil {
		return "", err
	}
	return p.carrier.Register(ctx, platform, token, userData)
}

// Unregister has an endpoint take nothing any more; one that there is not is no error.
func (p *Pusher) Unregister(ctx context.Context, endpoint string) error {
	return p.carrier.Unregister(ctx, endpoint)
}

// Send sends one notification to one device: ErrGone where there is none any more.
func (p *Pusher) Send(ctx context.Context, endpoint string, n Notification) error {
	n, err := fit(n)
	if err != nil {
		return err
	}
	return p.carrier.Send(ctx, endpoint, n)
}
