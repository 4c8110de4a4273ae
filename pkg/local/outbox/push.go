package outbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/agentplatform/agentplatform/pkg/atomicfile"
	"github.com/agentplatform/agentplatform/pkg/push"
)

// pushed is a push as it is kept.
type pushed struct {
	Endpoint string          `json:"endpoint"`
	Platform push.Platform   `json:"platform"`
	UserData string          `json:"user_data,omitempty"`
	Title    string          `json:"title"`
	DedupeID string          `json:"dedupe_id,omitempty"`
	Payload  json.RawMessage `json:"payload"` // as the platform would get it
}

// device is a registered one.
type device struct {
	Platform push.Platform `json:"platform"`
	Token    string        `json:"token"`
	UserData string        `json:"user_data"`
}

// endpoint is local-<platform>-<hash of the token>.
var endpointID = regexp.MustCompile(`^local-(?:apns|apns-sandbox|fcm)-[0-9a-f]{32}$`)

func (o *Outbox) device(endpoint string) string {
	return filepath.Join(o.dir, devices, endpoint+".json")
}

// Register implements push.Carrier; all platforms are served.
func (o *Outbox) Register(ctx context.Context, platform push.Platform, token, userData string) (endpoint string, err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(token))
	endpoint = fmt.Sprintf("local-%s-%s", platform, hex.EncodeToString(sum[:16]))
	content, err := text(device{platform, token, userData})
	if err != nil {
		return "", err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := atomicfile.Write(o.device(endpoint), content, 0o600); err != nil {
		return "", fmt.Errorf("outbox: %w", err)
	}
	return endpoint, nil
}

// Unregister implements push.Carrier.
func (o *Outbox) Unregister(ctx context.Context, endpoint string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !endpointID.MatchString(endpoint) {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := os.Remove(o.device(endpoint)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("outbox: %w", err)
	}
	return nil
}

// Send implements push.Carrier: it keeps the push.
func (o *Outbox) Send(ctx context.Context, endpoint string, n push.Notification) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !endpointID.MatchString(endpoint) {
		return fmt.Errorf("endpoint %.200q: %w", endpoint, push.ErrGone)
	}
	d, err := o.read(endpoint)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("endpoint %s: %w", endpoint, push.ErrGone)
	}
	if err != nil {
		return fmt.Errorf("endpoint %s: %w", endpoint, err)
	}
	content, err := text(pushed{endpoint, d.Platform, d.UserData, n.Title, n.DedupeID, push.Payload(d.Platform, n)})
	if err != nil {
		return err
	}
	return o.add(ctx, "json", content)
}

func (o *Outbox) read(endpoint string) (d device, err error) {
	content, err := os.ReadFile(o.device(endpoint))
	if err != nil {
		return d, err
	}
	return d, json.Unmarshal(content, &d)
}

// text is JSON for people to read.
func text(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.Bytes(), err
}
