package local

import (
	"context"
	"os"
	"path/filepath"

	"github.com/agentplatform/agentplatform/pkg/atomicfile"
	"github.com/agentplatform/agentplatform/pkg/audit/outbox"
	"github.com/agentplatform/agentplatform/pkg/sign"
)

// outbox records what happens before there are functions: the first sweep of the drainer finds it.
func (p *Platform) outbox() *outbox.Outbox {
	return outbox.New(outbox.Config{Key: []byte(p.secrets.get("AUDIT_EMISSION_KEY")), Wake: func(context.Context) error { return nil }})
}

// openSigner opens the anchors' signing key, made at the first start, and writes its public key beside it for whoever verifies.
func openSigner(ctx context.Context, dir string) (sign.Signer, string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, "", err
	}
	signer, err := sign.File(filepath.Join(dir, "anchor-key.pem"))
	if err != nil {
		return nil, "", err
	}
	public, err := signer.Public(ctx)
	if err != nil {
		return nil, "", err
	}
	text, err := sign.PublicPEM(public)
	if err != nil {
		return nil, "", err
	}
	path := filepath.Join(dir, "anchor-key.pub.pem")
	return signer, path, atomicfile.Write(path, text, 0o644)
}
