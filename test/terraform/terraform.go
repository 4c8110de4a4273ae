// Package terraform runs Terraform on copies of infra/, with nothing of what this machine knows of AWS: no account is ever asked by accident.
package terraform

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// Tiers are the roots of infra/, in the order of a deployment.
var Tiers = []string{"state", "foundation", "data", "app"}

// Copy copies infra/ and what it reads of the checkout at root into a folder, so that nothing is made in the checkout; what Terraform and people keep
// there for their own deployments stays there.
func Copy(root, to string) error {
	for _, top := range []string{"infra", "schema"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, entry os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			name, err := filepath.Rel(root, path)
			switch {
			case err != nil:
				return err
			case own(name) && entry.IsDir():
				return filepath.SkipDir
			case own(name):
				return nil
			case entry.IsDir():
				return os.MkdirAll(filepath.Join(to, name), 0o700)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(to, name), text, 0o600)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// own is what belongs to a deployment made in the checkout.
func own(path string) bool {
	name := filepath.Base(path)
	return strings.HasPrefix(name, ".") || strings.Contains(name, ".tfstate") ||
		strings.HasSuffix(name, ".tfvars") && filepath.Base(filepath.Dir(path)) != "tests" || strings.HasSuffix(name, ".tfvars.json")
}

// Command is terraform in a folder. Its credentials are good for nothing; env says where AWS is.
func Command(ctx context.Context, dir string, env []string, args ...string) (*exec.Cmd, error) {
	if _, err := exec.LookPath("terraform"); err != nil {
		return nil, errors.New("terraform 1.11 or later is not on the PATH: https://developer.hashicorp.com/terraform/install")
	}
	cmd := exec.CommandContext(ctx, "terraform", args...)
	cmd.Dir = dir
	for _, v := range cmd.Environ() {
		if name, _, _ := strings.Cut(v, "="); !strings.HasPrefix(name, "AWS_") && !strings.HasPrefix(name, "TF_VAR_") && !strings.HasPrefix(name, "TF_CLI_ARGS") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	// Reading the provider's schema makes most of the garbage, and is over soon.
	cmd.Env = append(cmd.Env, "TF_IN_AUTOMATION=1", "TF_CLI_ARGS=-no-color", "CHECKPOINT_DISABLE=1", "GOGC=400",
		"AWS_ACCESS_KEY_ID=none", "AWS_SECRET_ACCESS_KEY=none", "AWS_EC2_METADATA_DISABLED=true", "AWS_MAX_ATTEMPTS=1")
	cmd.Env = append(cmd.Env, env...)
	return cmd, nil
}

// Provider finds the provider's version line in a versions.tf.
var Provider = regexp.MustCompile(`(?s)source\s*=\s*"(hashicorp/aws)"\s*version\s*=\s*"~> (\d+)\.(\d+)"`)

// PluginDir is the folder of unpacked providers that the machine has, empty if it has none and terraform init is to fetch them: the named one, or else
// the first one at most three folders below the root that holds a version of the AWS provider that the tiers accept.
func PluginDir(root, named string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, "infra/foundation/versions.tf"))
	if err != nil {
		return "", err
	}
	wanted := Provider.FindStringSubmatch(string(text))
	if wanted == nil {
		return "", errors.New("infra/foundation/versions.tf names no version of hashicorp/aws")
	}
	holds := func(pattern string) string {
		platform := runtime.GOOS + "_" + runtime.GOARCH
		found, _ := filepath.Glob(filepath.Join(pattern, "registry.terraform.io", wanted[1], wanted[2]+"."+wanted[3]+".*", platform, "terraform-provider-aws_*"))
		if len(found) == 0 {
			return ""
		}
		dir := found[0]
		for range 6 { // binary, platform, version, aws, hashicorp, registry
			dir = filepath.Dir(dir)
		}
		return dir
	}
	if named != "" {
		if dir := holds(named); dir != "" {
			return dir, nil
		}
		return "", fmt.Errorf("TF_PLUGIN_DIR=%s holds no registry.terraform.io/%s/%s.%s.*", named, wanted[1], wanted[2], wanted[3])
	}
	tops, _ := os.ReadDir("/")
	for _, below := range []string{"", "*", "*/*"} {
		for _, top := range tops {
			if top.IsDir() && !slices.Contains([]string{"proc", "sys", "dev"}, top.Name()) {
				if dir := holds(filepath.Join("/", top.Name(), below)); dir != "" {
					return dir, nil
				}
			}
		}
	}
	return "", nil
}
