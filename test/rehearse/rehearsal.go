package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/agentplatform/agentplatform/test/standin"
	"github.com/agentplatform/agentplatform/test/terraform"
)

const (
	region = "eu-central-1"
	stage  = "dev"
	prefix = "agentplatform-" + stage
)

// parallel is because most of the time goes by while the provider waits for what a service would take.
const parallel = "-parallelism=50"

type config struct {
	root    string // of the checkout
	dist    string // the functions' zips, by an absolute path
	plugins string // empty: what is found
}

// rehearsal is a deployment to a stand-in, from begin to end.
type rehearsal struct {
	config
	out   io.Writer
	dir   string // of everything that is made
	aws   *standin.AWS
	world *world
	tiers []*tier
	env   []string // for terraform, beside what it always gets
}

// tier is one root of infra/.
type tier struct {
	name      string
	variables map[string]any
	resources int           // that its plan makes
	plan      time.Duration // refreshing nothing: there is nothing yet
	apply     time.Duration
	destroy   time.Duration
}

// variablesOf are a deployment with everything switched on, and what a stand-in and a trial need.
func variablesOf(dist string) map[string]map[string]any {
	return map[string]map[string]any{
		"state": {"deletion_protection": false, "deny_insecure_transport": false},
		"foundation": {"deletion_protection": false, "domain_name": "agents.example.com", "dns_delegated": true,
			"email_domain": "agents.example.com", "invitations_from": "agents@agents.example.com", "mail_domain": "in.agents.example.com"},
		"data": {"db_password": "rehearsal-Password-0123456789", "deletion_protection": false, "final_snapshot": nil, "secret_recovery_days": 0, "force_destroy_buckets": true,
			"deny_insecure_transport": false, "audit_cold_small": false, "verifier_principals": []string{"arn:aws:iam::" + standin.Account + ":root"}},
		"app": {"dist": dist, "runtime_image_tag": "1.0.0", "operator_emails": []string{"ops@example.com"}, "alarm_emails": []string{"oncall@example.com"}, "mail_from": "agents@agents.example.com",
			"push_applications": map[string]string{"fcm": "arn:aws:sns:" + region + ":" + standin.Account + ":app/GCM/agents"},
			"first_tenant":      map[string]string{"slug": "acme", "name": "Acme", "owner_email": "ann@acme.example"}},
	}
}

// begin starts the stand-in and what its functions stand on, and makes the working copies.
func begin(ctx context.Context, out io.Writer, c config) (_ *rehearsal, err error) {
	dir, err := os.MkdirTemp("", "rehearsal")
	if err != nil {
		return nil, err
	}
	r := &rehearsal{config: c, out: out, dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.end())
		}
	}()
	fmt.Fprintln(out, "starting moto, PostgreSQL and the functions that a deployment calls …")
	if r.world, err = newWorld(ctx, c.root, dir, func() *standin.AWS { return r.aws }); err != nil {
		return nil, err
	}
	if r.aws, err = standin.Start(ctx, r.world.invocations()); err != nil {
		return nil, err
	}
	if err = terraform.Copy(c.root, dir); err != nil {
		return nil, err
	}
	if r.plugins, err = terraform.PluginDir(c.root, c.plugins); err != nil {
		return nil, err
	}
	r.env = []string{"AWS_ENDPOINT_URL=" + r.aws.URL, "AWS_REGION=" + region, "TF_VAR_stage=" + stage, "TF_VAR_region=" + region, "TF_VAR_account_id=" + standin.Account}
	if r.plugins == "" { // fetched once for all tiers
		cache := filepath.Join(dir, "plugins")
		if err = os.Mkdir(cache, 0o700); err != nil {
			return nil, err
		}
		r.env = append(r.env, "TF_PLUGIN_CACHE_DIR="+cache)
	}
	variables := variablesOf(c.dist)
	for _, name := range terraform.Tiers {
		t := &tier{name: name, variables: variables[name]}
		r.tiers = append(r.tiers, t)
		text, err := json.Marshal(t.variables)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, "infra", name, "rehearsal.auto.tfvars.json"), text, 0o600); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// end stops everything and removes what was made.
func (r *rehearsal) end() error {
	var errs []error
	if r.world != nil {
		errs = append(errs, r.world.stop())
	}
	if r.aws != nil {
		errs = append(errs, r.aws.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(r.dir))...)
}

// run runs terraform in a tier and gives what it says. An error has the part of it that tells of errors, and the calls that nobody answered.
func (r *rehearsal) run(ctx context.Context, tier, command string, args ...string) (string, error) {
	cmd, err := terraform.Command(ctx, filepath.Join(r.dir, "infra", tier), r.env, append([]string{command}, args...)...)
	if err != nil {
		return "", err
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it gives its lock back
	cmd.WaitDelay = time.Minute
	var said, warned bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &warned
	err = cmd.Run()
	if err == nil {
		return said.String(), nil
	}
	text := said.String() + warned.String()
	if i := strings.Index(text, "Error: "); i >= 0 {
		text = text[i:]
	}
	err = fmt.Errorf("terraform %s of infra/%s: %w\n%s", command, tier, err, text)
	if calls := r.aws.Unanswered(); len(calls) > 0 {
		err = fmt.Errorf("%w\nneither moto nor the stand-in knows: %s; moto said last:\n%s", err, strings.Join(calls, "; "), r.aws.Log())
	}
	return text, err
}

var planned = regexp.MustCompile(`(?m)^Plan: (\d+) to add, `)

// deploy plans and applies one tier, and hands its outputs on.
func (r *rehearsal) deploy(ctx context.Context, t *tier) error {
	if err := r.init(ctx, t); err != nil {
		return err
	}
	fmt.Fprintf(r.out, "%s: ", t.name)
	began := time.Now()
	said, err := r.run(ctx, t.name, "plan", "-input=false", "-out=tier.plan")
	if err != nil {
		return err
	}
	t.plan = time.Since(began)
	found := planned.FindStringSubmatch(said)
	if found == nil {
		return fmt.Errorf("infra/%s: the plan makes nothing", t.name)
	}
	if t.resources, err = strconv.Atoi(found[1]); err != nil {
		return err
	}
	fmt.Fprintf(r.out, "%d resources, planned in %s … ", t.resources, seconds(t.plan))
	began = time.Now()
	if _, err = r.run(ctx, t.name, "apply", "-input=false", parallel, "tier.plan"); err != nil {
		return err
	}
	t.apply = time.Since(began)
	fmt.Fprintf(r.out, "applied in %s\n", seconds(t.apply))
	if calls := r.aws.Unanswered(); len(calls) > 0 {
		return fmt.Errorf("neither moto nor the stand-in knows: %s", strings.Join(calls, "; "))
	}
	if t.name == "foundation" || t.name == "data" {
		value, err := r.run(ctx, t.name, "output", "-json", t.name)
		if err != nil {
			return err
		}
		r.env = append(r.env, "TF_VAR_"+t.name+"="+strings.TrimSpace(value))
	}
	return nil
}

// init readies a tier, its state where the tier state says.
func (r *rehearsal) init(ctx context.Context, t *tier) error {
	args := []string{"-input=false"}
	if r.plugins != "" {
		args = append(args, "-plugin-dir="+r.plugins)
	}
	if t.name != "state" {
		text, err := r.run(ctx, "state", "output", "-json", "backend")
		if err != nil {
			return err
		}
		var backend map[string]any
		if err := json.Unmarshal([]byte(text), &backend); err != nil {
			return err
		}
		backend["key"] = t.name + ".tfstate"
		for _, name := range slices.Sorted(maps.Keys(backend)) {
			args = append(args, fmt.Sprintf("-backend-config=%s=%v", name, backend[name]))
		}
	}
	_, err := r.run(ctx, t.name, "init", args...)
	return err
}

// figures are a line for each tier.
func (r *rehearsal) figures() {
	fmt.Fprintln(r.out)
	table := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "tier\tresources\tplan\tapply\t")
	var all tier
	for _, t := range r.tiers {
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t\n", t.name, t.resources, seconds(t.plan), seconds(t.apply))
		all.resources, all.plan, all.apply = all.resources+t.resources, all.plan+t.plan, all.apply+t.apply
	}
	fmt.Fprintf(table, "all\t%d\t%s\t%s\t\n", all.resources, seconds(all.plan), seconds(all.apply))
	_ = table.Flush()
	calls := 0
	for _, n := range r.aws.Calls() {
		calls += n
	}
	fmt.Fprintf(r.out, "%d calls to AWS\n", calls)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// outputs prints the tier app's, and that the first tenant is there.
func (r *rehearsal) outputs(ctx context.Context) error {
	text, err := r.run(ctx, "app", "output", "-json")
	if err != nil {
		return err
	}
	var all map[string]struct{ Value json.RawMessage }
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return err
	}
	fmt.Fprintln(r.out, "\nOutputs of app:")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if value := string(all[name].Value); !strings.HasPrefix(value, "{") && !strings.HasPrefix(value, "[") {
			fmt.Fprintf(r.out, "  %s = %s\n", name, value)
		}
	}
	tenants, err := r.world.tenants(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(r.out, "In the database: %s\n", tenants)
	return nil
}

// destroy takes the tiers away again, the last one first.
func (r *rehearsal) destroy(ctx context.Context) error {
	fmt.Fprintln(r.out)
	for _, t := range slices.Backward(r.tiers) {
		if err := r.free(ctx, t.name); err != nil {
			return err
		}
		began := time.Now()
		if _, err := r.run(ctx, t.name, "destroy", "-auto-approve", "-input=false", parallel); err != nil {
			return err
		}
		t.destroy = time.Since(began)
		fmt.Fprintf(r.out, "%s: destroyed in %s\n", t.name, seconds(t.destroy))
	}
	if calls := r.aws.Unanswered(); len(calls) > 0 {
		return fmt.Errorf("neither moto nor the stand-in knows: %s", strings.Join(calls, "; "))
	}
	return nil
}
