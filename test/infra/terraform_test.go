// Package infra_test holds the Terraform of infra/ against what is promised of it, without an account: format and validity, each tier's own tests with a
// mocked provider, and the plan that a deployment would begin with, made offline by the real provider and read as JSON.
//
// It needs terraform on the PATH. The AWS provider is taken from the machine where it is there (TF_PLUGIN_DIR, else a plugin directory that is found),
// else terraform fetches it as for any user.
package infra_test

import (
	"archive/zip"
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
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/schema"
	tf "github.com/agentplatform/agentplatform/test/terraform"
)

const (
	root    = "../.." // a test runs in its package's folder
	account = "123456789012"
	region  = "eu-central-1"
	// secret is the database's password; it may be nowhere but where it is used.
	secret = "kept-out-of-everything-else"
)

var (
	tiers    = tf.Tiers
	provider = tf.Provider
)

// work is a copy of infra/ and of what it reads, each root of it initialized, so that nothing is made in the checkout.
var work = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(scratch, "infra")
	if err := tf.Copy(root, scratch); err != nil {
		return "", err
	}
	init := []string{"init", "-input=false"}
	plugins, err := tf.PluginDir(root, os.Getenv("TF_PLUGIN_DIR"))
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
	if err := errors.Join(errs...); err != nil {
		return "", err
	}
	// Each function has a zip, as cmd/pack would make it, and the tier app is planned with what AWS would say only afterwards, so that every policy can
	// be read in the plan.
	for _, row := range rows().Rows {
		if err := zipped(filepath.Join(scratch, "dist"), row.Name); err != nil {
			return "", err
		}
	}
	if err := os.CopyFS(filepath.Join(dir, planned), os.DirFS(filepath.Join(dir, "app"))); err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, planned, "known_override.tf"), []byte(known), 0o600)
})

// planned is the copy of the tier app that is planned.
const planned = "app_planned"

const known = `locals {
  graphql_arn = "arn:aws:appsync:eu-central-1:123456789012:apis/planned"
  runtime_arn = "arn:aws:bedrock-agentcore:eu-central-1:123456789012:runtime/planned"
  graphql_url = "https://planned.appsync-api.eu-central-1.amazonaws.com"

  interpreter_id = "planned"
}`

func rows() manifest.Manifest {
	m, err := manifest.Parse(schema.Routes)
	if err != nil {
		panic(err)
	}
	return m
}

// zipped makes a function's zip.
func zipped(folder, name string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	var buffer bytes.Buffer
	archive := zip.NewWriter(&buffer)
	file, err := archive.Create("bootstrap")
	if err != nil {
		return err
	}
	if _, err := io.WriteString(file, name); err != nil {
		return err
	}
	return errors.Join(archive.Close(), os.WriteFile(filepath.Join(folder, name+".zip"), buffer.Bytes(), 0o600))
}

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

// terraform runs it in a folder, and gives what it says on both outputs.
func terraform(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	cmd, err := tf.Command(ctx, dir, env, args...)
	if err != nil {
		return "", err
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
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

// A plan is what terraform would make.
type plan struct {
	PlannedValues struct {
		Outputs map[string]struct {
			Sensitive bool            `json:"sensitive"`
			Value     json.RawMessage `json:"value"`
		} `json:"outputs"`
	} `json:"planned_values"`
	Changes []resource `json:"resource_changes"`
}

// A resource has the values that are known before it is made; of those that are not, Unknown has true.
type resource struct {
	Address string `json:"address"`
	Module  string `json:"module_address"`
	Type    string `json:"type"`
	Name    string `json:"name"`
	Index   any    `json:"index"`
	Change  struct {
		Actions []string       `json:"actions"`
		After   values         `json:"after"`
		Unknown map[string]any `json:"after_unknown"`
	} `json:"change"`
	Values values `json:"-"`
}

// text is a value that is a text; empty when it is not there.
func (r resource) text(name string) string {
	s, _ := r.Values[name].(string)
	return s
}

// block is the one block of that name.
func (r resource) block(t *testing.T, name string) map[string]any {
	t.Helper()
	list, _ := r.Values[name].([]any)
	require.Len(t, list, 1, "%s: %s", r.Address, name)
	block, ok := list[0].(map[string]any)
	require.True(t, ok, "%s: %s", r.Address, name)
	return block
}

// moduleKey is the key of for_each of a module.
var moduleKey = regexp.MustCompile(`\["([^"]+)"\]$`)

// key is what for_each made it for, be it its own or its module's.
func (r resource) key() string {
	if key, ok := r.Index.(string); ok {
		return key
	}
	if found := moduleKey.FindStringSubmatch(r.Module); found != nil {
		return found[1]
	}
	return ""
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

func (p *plan) resources() []resource { return p.Changes }

// keyed are the resources of a type by their keys; name narrows them, if it is given.
func (p *plan) keyed(kind, name string) map[string]resource {
	found := map[string]resource{}
	for _, r := range p.resources() {
		if r.Type == kind && (name == "" || r.Name == name) {
			found[r.key()] = r
		}
	}
	return found
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
		if r.Module == module {
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
	"app":        {"dist": "../../dist", "agent_runtime": true, "runtime_image_tag": "1.4.0"},
	"data": {"db_password": secret, "foundation": map[string]any{
		"prefix": "agentplatform-dev", "region": region, "account_id": account,
		"database_subnet_ids": []string{"subnet-a", "subnet-b"}, "database_security_group_id": "sg-database",
		"anchor_signing_key_arn": "arn:aws:kms:eu-central-1:123456789012:key/anchor", "key_arns": keyARNs(),
	}},
}

func keyARNs() map[string]string {
	arns := map[string]string{}
	for _, category := range []string{"database", "platform", "emission", "oauth", "tools", "integrations", "mail", "objects", "audit", "assets", "logs"} {
		arns[category] = "arn:aws:kms:" + region + ":" + account + ":key/" + category
	}
	return arns
}

// identityOnly is an AWS that knows who is asking, finds every state machine valid, and nothing else; it remembers what else it was asked.
type identityOnly struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
}

func newIdentityOnly() *identityOnly {
	s := &identityOnly{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		if r.Header.Get("X-Amz-Target") == "AWSStepFunctions.ValidateStateMachineDefinition" { // the provider asks while planning; test/workflow asks another judge
			w.Header().Set("Content-Type", "application/x-amz-json-1.0")
			fmt.Fprint(w, `{"result":"OK","diagnostics":[]}`)
			return
		}
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
	vars := []string{}
	if tier == "app" {
		dir = filepath.Join(filepath.Dir(dir), planned)
		vars = append(vars, "-var-file=tests/terraform.tfvars")
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
	if out, err := terraform(ctx, dir, []string{"AWS_ENDPOINT_URL=" + aws.URL}, slices.Concat([]string{"plan", "-input=false", "-lock=false"}, vars, []string{"-var-file=" + file, "-out=" + saved})...); err != nil {
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
	if err := json.Unmarshal(out, &p); err != nil {
		return nil, err
	}
	for i, r := range p.Changes {
		if !slices.Equal(r.Change.Actions, []string{"create"}) {
			return nil, fmt.Errorf("%s: %v, where nothing is there yet", r.Address, r.Change.Actions)
		}
		p.Changes[i].Values = r.Change.After
	}
	fmt.Printf("infra/%s: %d resources\n", tier, len(p.Changes))
	return &p, nil
}

func planOf(t *testing.T, tier string) *plan {
	t.Helper()
	p, err := plans[tier](context.Background())
	require.NoError(t, err)
	return p
}
