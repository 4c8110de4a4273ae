package bucket

import (
	"errors"
	"fmt"
	"regexp"
)

// Config says where the server keeps its data, where it listens and who may use it.
type Config struct {
	Dir  string // data directory, made when missing (mode 0700); relative paths are resolved once, at Start
	Addr string // host:port to listen on; default 127.0.0.1:0, port 0 = a free one

	Region string // region that clients sign for; default us-east-1

	RootKey    string // access key id that may do everything
	RootSecret string // its secret

	ReaderKey    string // access key id that may only list and read Buckets
	ReaderSecret string // its secret

	Buckets []Bucket // buckets that exist after Start; others in Dir are kept, and closed to the reader
}

// Bucket is a bucket that Start makes or brings up to this description. Start only ever adds protection: a bucket
// that has versions or object lock keeps them.
type Bucket struct {
	Name       string // 3 to 63 of a-z, 0-9, '-' and '.'
	ObjectLock bool   // locked objects are possible; includes Versioning
	Versioning bool   // an overwrite or delete keeps the older version
}

var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

func (c Config) withDefaults() (Config, error) {
	if c.Addr == "" {
		c.Addr = "127.0.0.1:0"
	}
	if c.Region == "" {
		c.Region = "us-east-1"
	}
	if c.Dir == "" {
		return c, errors.New("bucket: Dir is empty")
	}
	if c.RootKey == "" || c.RootSecret == "" || c.ReaderKey == "" || c.ReaderSecret == "" {
		return c, errors.New("bucket: root and reader need a key and a secret each")
	}
	if c.RootKey == c.ReaderKey {
		return c, errors.New("bucket: the reader key must differ from the root key")
	}
	seen := make(map[string]bool, len(c.Buckets))
	for _, b := range c.Buckets {
		if !bucketName.MatchString(b.Name) || seen[b.Name] {
			return c, fmt.Errorf("bucket: %q is not a bucket name or is named twice", b.Name)
		}
		seen[b.Name] = true
	}
	return c, nil
}
