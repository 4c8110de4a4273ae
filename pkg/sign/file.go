package sign

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

type file struct{ key *ecdsa.PrivateKey }

// File is the Signer of the key in the file at path: one PEM block of PKCS #8, readable by its owner only. A missing
// file is made, with a new key and mode 0600; of several processes that do so at once all use the key of the first.
// The folder must exist. Anything else in the file is refused and left as it is.
func File(path string) (Signer, error) {
	key, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = create(path); err == nil {
			key, err = read(path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("sign: key file %s: %w", path, err)
	}
	return file{key}, nil
}

func (f file) Sign(ctx context.Context, digest [32]byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return ecdsa.SignASN1(rand.Reader, f.key, digest[:])
}

func (f file) Public(context.Context) (*ecdsa.PublicKey, error) { return &f.key.PublicKey, nil }

func read(path string) (*ecdsa.PrivateKey, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("mode %#o: others than its owner may use the key (chmod 600)", info.Mode().Perm())
	}
	if !info.Mode().IsRegular() || info.Size() > 1<<16 {
		return nil, errors.New("not a key file")
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	block, rest := pem.Decode(text)
	if block == nil || block.Type != "PRIVATE KEY" || len(bytes.TrimSpace(rest)) != 0 {
		return nil, errors.New("not one PEM block PRIVATE KEY")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("a %T, not an ECDSA key", parsed)
	}
	_, err = P256(&key.PublicKey)
	return key, err
}

// create writes a new key to path unless something is there: whole and durable before it has that name, by a link,
// which never replaces.
func create(path string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".key-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	err = pem.Encode(tmp, &pem.Block{Type: "PRIVATE KEY", Bytes: der})
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err != nil {
		return err
	}
	if err := os.Link(tmp.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}
