// Command image makes the container image of cmd/agent-runtime, dist/agent-runtime.tar, and pushes it. It needs no container engine.
//
// The same source gives the same bytes, on any machine and at any time: the image's digest says which code it is. A tag is never moved: a
// deployment pins it, and what it pinned must stay what it was.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/google/go-containerregistry/pkg/authn"
)

// platform is what Amazon Bedrock AgentCore runs.
const platform = "arm64"

func main() {
	dist := flag.String("dist", "dist", "`folder` for agent-runtime.tar")
	target := flag.String("push", "", "push the image as `registry/repository:tag`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *dist, *target, keychain(), os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// keychain knows the registry's password: from the environment, else where container tools keep it (docker login, podman login).
func keychain() authn.Keychain {
	if password := os.Getenv("REGISTRY_PASSWORD"); password != "" {
		return given{authn.Basic{Username: os.Getenv("REGISTRY_USERNAME"), Password: password}}
	}
	return authn.DefaultKeychain
}

type given struct{ basic authn.Basic }

func (g given) Resolve(authn.Resource) (authn.Authenticator, error) { return &g.basic, nil }

func run(ctx context.Context, dist, target string, keys authn.Keychain, out io.Writer) error {
	fmt.Fprintf(out, "building agent-runtime for linux/%s …\n", platform)
	program, err := build(ctx, platform)
	if err != nil {
		return err
	}
	image, err := assemble(program, platform)
	if err != nil {
		return err
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	file := filepath.Join(dist, "agent-runtime.tar")
	if err := os.MkdirAll(dist, 0o755); err != nil {
		return err
	}
	if err := writeArchive(file, image); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\t%.1f MB\t%s\n", file, float64(len(program))/1e6, digest)
	if target == "" {
		return nil
	}
	pushed, err := push(ctx, image, target, keys)
	if err != nil {
		return err
	}
	if !pushed {
		fmt.Fprintf(out, "%s is this image already\n", target)
		return nil
	}
	fmt.Fprintf(out, "pushed %s\n", target)
	return nil
}

// build is the program, static and without anything of the machine that built it.
func build(ctx context.Context, arch string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "agent-runtime-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "agent-runtime")
	command := exec.CommandContext(ctx, "go", "build", "-o", name, "-trimpath", "-buildvcs=false", "-ldflags", "-s -w",
		"github.com/agentplatform/agentplatform/cmd/agent-runtime")
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("go build: %w", err)
	}
	return os.ReadFile(name)
}
