package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// push gives the image its tag in a registry; false: it has it. A tag that is another image's is refused.
func push(ctx context.Context, image v1.Image, target string, keys authn.Keychain) (pushed bool, err error) {
	tag, err := name.NewTag(target, name.StrictValidation)
	if err != nil {
		return false, fmt.Errorf("-push takes registry/repository:tag: %w", err)
	}
	if tag.TagStr() == name.DefaultTag {
		return false, fmt.Errorf("%s: a deployment pins a tag, so it must name one version, not the latest", target)
	}
	digest, err := image.Digest()
	if err != nil {
		return false, err
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(keys)}
	there, err := remote.Head(tag, options...)
	var answered *transport.Error
	switch {
	case err == nil && there.Digest == digest:
		return false, nil
	case err == nil:
		return false, fmt.Errorf("%s is another image, %s; a tag is never moved: choose a new one for %s", target, there.Digest, digest)
	case errors.As(err, &answered) && answered.StatusCode == http.StatusNotFound:
		return true, remote.Write(tag, image, options...)
	}
	return false, fmt.Errorf("asking the registry for %s: %w", target, err)
}
