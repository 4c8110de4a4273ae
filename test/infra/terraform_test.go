// Package infra_test holds the Terraform of infra/ against what is promised of it, without an account: format and validity, each tier's own tests with a
// mocked provider, and the plan that a deployment would begin with, made offline by the real provider and read as JSON.
//
// It needs terraform on the PATH. The AWS provider is taken from the machine where it is there (TF_PLUGIN_DIR, else a plugin directory that is found),
// else terraform fetches it as for any user.
package infra_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	root    = "../.." // a test runs in its package's folder
	account = "123456789012"
	region  = "eu-central-1"
	// secret is the database's password; it may be nowhere but where it is used.
	secret = "kept-out-of-everything-else"
)

// tiers are the roots of infra/, in the order of a deployment.
var tiers = []string{"state", "foundation", "data"}

var provider = regexp.MustCompile(`(?s)source\s*=\s*"(hashicorp/aws)"\s*version\s*=\s*"~> (\d+)\.(\d+)"`)

// work is a copy of infra/, each root of it initialized, so that nothing is made in the checkout.
var work = sync.OnceValues(func() (string, error) {
	if _, err := exec.LookPath("terraform"); err != nil {
		return "", errors.New("this test needs terraform 1.7 or later on the PATH: https://developer.hashicorp.com/terraform/install")
	}
	dir := filepath.Join(scratch, "infra")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "infra"))); err != nil {
		return "", err
	}
	init := []string{"init", "-input=false"}
	plugins, err := pluginDir()
	if err != nil {
		return "", err
	}
	if plugins != "" {
		init = append(init, "-plugin-dir="+plugins)
	}
	errs := make([]error, len(tiers))
	var wg sync.WaitGroup
	for i, tier := range tiers {
		// The state of a test is a file of its own, not what backend "s3" would find.
		override := filepath.Join(dir, tier, "backend_override.tf")
		if err := os.WriteFile(override, []byte("terraform {\n  backend \"local\" {}\n}\n"), 0o600); err != nil {
			return "", err
		}
		wg.Go(func() {
			if out, err := terraform(context.Background(), filepath.Join(dir, tier), nil, init...); err != nil {
				errs[i] = fmt.Errorf("terraform init of infra/%s: %w\n%s\nwithout a network, unpack the provider into a plugin directory and name it in TF_PLUGIN_DIR", tier, err, out)
			}
		})
	}
	wg.Wait()
	return dir, errors.Join(errs...)
})

var scratch string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "infra")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	scratch = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// pluginDir is the folder of unpacked providers that the machine has, empty if it has none: TF_PLUGIN_DIR, or the first one at most three folders below
// the root that holds a version of the AWS provider that the tiers accept.
func pluginDir() (string, error) {
	text, err := os.ReadFile(filepath.Join(root, "infra/foundation/versions.tf"))
	if err != nil {
		return "", err
	}
	wanted := provider.FindStringSubmatch(string(text))
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
	if named := os.Getenv("TF_PLUGIN_DIR"); named != "" {
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

// terraform runs it in a folder, with nothing of this machine's AWS settings and with env, and gives what it says on both outputs.
func terraform(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "terraform", args...)
	cmd.Dir = dir
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); !strings.HasPrefix(name, "AWS_") && !strings.HasPrefix(name, "TF_VAR_") && !strings.HasPrefix(name, "TF_CLI_ARGS") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	// Reading the provider's schema makes most of the garbage, and is over soon.
	cmd.Env = append(cmd.Env, "TF_IN_AUTOMATION=1", "TF_CLI_ARGS=-no-color", "CHECKPOINT_DISABLE=1", "GOGC=400",
		"AWS_ACCESS_KEY_ID=none", "AWS_SECRET_ACCESS_KEY=none", "AWS_EC2_METADATA_DISABLED=true", "AWS_MAX_ATTEMPTS=1")
	cmd.Env = append(cmd.Env, env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

func folder(t *testing.T, tier string) string {
	t.Helper()
	dir, err := work()
	require.NoError(t, err)
	return filepath.Join(dir, tier)
}

func TestFormat(t *testing.T) {
	t.Parallel()
	out, err := terraform(t.Context(), folder(t, ""), nil, "fmt", "-check", "-recursive", "-diff")
	require.NoError(t, err, "terraform fmt -recursive infra would change:\n%s", out)
}

// TestValidate also validates the modules, by those who use them.
func TestValidate(t *testing.T) {
	t.Parallel()
	for _, tier := range tiers {
		out, err := terraform(t.Context(), folder(t, tier), nil, "validate")
		require.NoError(t, err, "infra/%s: %s", tier, out)
	}
}

// TestTiers runs each tier's own tests: the whole tier with a provider that answers by itself, and each variable's rules.
func TestTiers(t *testing.T) {
	for _, tier := range tiers {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			out, err := terraform(t.Context(), folder(t, tier), nil, "test")
			require.NoError(t, err, "%s", out)
			require.Regexp(t, `Success! [1-9][0-9]* passed, 0 failed\.`, out)
		})
	}
}

// A plan is what terraform would make.
type plan struct {
	PlannedValues struct {
		Outputs map[string]struct {
			Sensitive bool            `json:"sensitive"`
			Value     json.RawMessage `json:"value"`
		} `json:"outputs"`
		RootModule module `json:"root_module"`
	} `json:"planned_values"`
}

type module struct {
	Address   string     `json:"address"`
	Resources []resource `json:"resources"`
	Children  []module   `json:"child_modules"`
}

// A resource has the values that are known before it is made.
type resource struct {
	Address string `json:"address"`
	Type    string `json:"type"`
	Name    string `json:"name"`
	Index   any    `json:"index"`
	Values  values `json:"values"`
	module  string
}

type values map[string]any

// at walks down: a name into a block or map, and into the first of a list on the way.
func (v values) at(path ...string) any {
	var here any = map[string]any(v)
	for _, name := range path {
		if list, ok := here.([]any); ok {
			if len(list) == 0 {
				return nil
			}
			here = list[0]
		}
		m, ok := here.(map[string]any)
		if !ok {
			return nil
		}
		here = m[name]
	}
	return here
}

func (p *plan) resources() []resource {
	var all []resource
	var add func(module)
	add = func(m module) {
		for _, r := range m.Resources {
			r.module = m.Address
			all = append(all, r)
		}
		for _, c := range m.Children {
			add(c)
		}
	}
	add(p.PlannedValues.RootModule)
	return all
}

// of are the resources of a type.
func (p *plan) of(t *testing.T, kind string) []resource {
	t.Helper()
	var found []resource
	for _, r := range p.resources() {
		if r.Type == kind {
			found = append(found, r)
		}
	}
	require.NotEmpty(t, found, "the plan has no %s", kind)
	return found
}

// in is the one resource of a type in a module.
func (p *plan) in(t *testing.T, module, kind string) resource {
	t.Helper()
	var found []resource
	for _, r := range p.of(t, kind) {
		if r.module == module {
			found = append(found, r)
		}
	}
	require.Len(t, found, 1, "%s in %s", kind, module)
	return found[0]
}

// only is the one resource of a type.
func (p *plan) only(t *testing.T, kind string) resource {
	t.Helper()
	found := p.of(t, kind)
	require.Len(t, found, 1, kind)
	return found[0]
}

var variables = map[string]map[string]any{
	"state":      {},
	"foundation": {},
	"data": {"db_password": secret, "foundation": map[string]any{
		"prefix": "agentplatform-dev", "region": region, "account_id": account,
		"database_subnet_ids": []string{"subnet-a", "subnet-b"}, "database_security_group_id": "sg-database",
		"anchor_signing_key_arn": "arn:aws:kms:eu-central-1:123456789012:key/anchor", "key_arns": keyARNs(),
	}},
}

func keyARNs() map[string]string {
	arns := map[string]string{}
	for _, category := range []string{"database", "platform", "emission", "oauth", "tools", "objects", "audit", "assets", "logs"} {
		arns[category] = "arn:aws:kms:" + region + ":" + account + ":key/" + category
	}
	return arns
}

// identityOnly is an AWS that knows who is asking and nothing else, and remembers what else it was asked.
type identityOnly struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
}

func newIdentityOnly() *identityOnly {
	s := &identityOnly{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<16))
		if !bytes.Contains(body, []byte("Action=GetCallerIdentity&")) {
			s.mu.Lock()
			s.asked = append(s.asked, fmt.Sprintf("%s %s %s %.200s", r.Method, r.URL, r.Header.Get("X-Amz-Target"), body))
			s.mu.Unlock()
			w.WriteHeader(http.StatusNotImplemented)
			return
		}
		w.Header().Set("Content-Type", "text/xml")
		fmt.Fprintf(w, `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult><Arn>arn:aws:iam::%[1]s:user/none</Arn>`+
			`<UserId>NONE</UserId><Account>%[1]s</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`, account)
	}))
	return s
}

// plans are made once each, by the real provider.
var plans = func() map[string]func(context.Context) (*plan, error) {
	made := map[string]func(context.Context) (*plan, error){}
	for _, tier := range tiers {
		var once sync.Once
		var p *plan
		var err error
		made[tier] = func(ctx context.Context) (*plan, error) {
			once.Do(func() { p, err = makePlan(ctx, tier) })
			return p, err
		}
	}
	return made
}()

func makePlan(ctx context.Context, tier string) (*plan, error) {
	dir, err := work()
	if err != nil {
		return nil, err
	}
	dir = filepath.Join(dir, tier)
	given := map[string]any{"stage": "dev", "region": region, "account_id": account}
	for name, value := range variables[tier] {
		given[name] = value
	}
	text, err := json.Marshal(given)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(scratch, tier+".tfvars.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	aws := newIdentityOnly()
	defer aws.Close()
	saved := filepath.Join(scratch, tier+".plan")
	if out, err := terraform(ctx, dir, []string{"AWS_ENDPOINT_URL=" + aws.URL}, "plan", "-input=false", "-lock=false", "-var-file="+file, "-out="+saved); err != nil {
		return nil, fmt.Errorf("terraform plan of infra/%s: %w\n%s", tier, err, out)
	}
	if len(aws.asked) > 0 {
		return nil, fmt.Errorf("planning infra/%s asks AWS for more than who it is: %s", tier, strings.Join(aws.asked, "\n"))
	}
	cmd := exec.CommandContext(ctx, "terraform", "show", "-json", saved)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CHECKPOINT_DISABLE=1", "GOGC=400")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("terraform show of infra/%s: %w", tier, err)
	}
	var p plan
	return &p, json.Unmarshal(out, &p)
}

func planOf(t *testing.T, tier string) *plan {
	t.Helper()
	p, err := plans[tier](context.Background())
	require.NoError(t, err)
	return p
}
