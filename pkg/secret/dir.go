package secret

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/agentplatform/agentplatform/pkg/atomicfile"
)

type dir struct {
	path string // absolute
	aead cipher.AEAD
}

// Dir is the Store of the folder at path, which is made (mode 0700) when it is missing: a file per secret, mode 0600, sealed by AES-256-GCM under a key
// that HKDF makes of key (32 characters or more, hard to guess), with the id authenticated: a file under another name or another key is ErrForeign.
// Several processes may use one folder. A crash in Put leaves the old or the new value, and at most a sealed file .new-… beside it.
func Dir(path, key string) (Store, error) {
	if len(key) < 32 {
		return nil, fmt.Errorf("secrets in %s: the key must have at least 32 characters", path)
	}
	derived, err := hkdf.Key(sha256.New, []byte(key), nil, "agentplatform/secret/dir/1", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	if path, err = filepath.Abs(path); err != nil { // the working directory may change
		return nil, err
	}
	return dir{path, aead}, os.MkdirAll(path, 0o700)
}

func (d dir) Get(ctx context.Context, id ID) (string, error) {
	value, err := d.get(ctx, id)
	return value, named(id, err)
}

func (d dir) get(ctx context.Context, id ID) (string, error) {
	file, err := d.file(ctx, id)
	if err != nil {
		return "", err
	}
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", ErrMissing
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	sealed, err := io.ReadAll(io.LimitReader(f, maxSize+int64(d.aead.Overhead())+1)) // of a longer one enough to be refused
	if err != nil {
		return "", err
	}
	value, err := d.aead.Open(nil, nil, sealed, []byte(id.text))
	if err != nil {
		return "", ErrForeign
	}
	return string(value), nil
}

func (d dir) Put(ctx context.Context, id ID, value string) error {
	return named(id, d.put(ctx, id, value))
}

func (d dir) put(ctx context.Context, id ID, value string) error {
	file, err := d.file(ctx, id)
	if err != nil {
		return err
	}
	if err := Check(value); err != nil {
		return err
	}
	return atomicfile.Write(file, d.aead.Seal(nil, nil, []byte(value), []byte(id.text)), 0o600)
}

func (d dir) Delete(ctx context.Context, id ID) error {
	return named(id, d.remove(ctx, id))
}

func (d dir) remove(ctx context.Context, id ID) error {
	file, err := d.file(ctx, id)
	if err != nil {
		return err
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return atomicfile.SyncDir(d.path) // of a missing one too: whoever removed it may not have come so far
}

// file is where a secret is: an id has no dot, so that its words may be told apart by one.
func (d dir) file(ctx context.Context, id ID) (string, error) {
	if id == (ID{}) {
		return "", ErrNoID
	}
	return filepath.Join(d.path, strings.ReplaceAll(id.text, "/", ".")+".sealed"), ctx.Err()
}

func named(id ID, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("secret %s: %w", id, err)
}
