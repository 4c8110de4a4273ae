package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/local/awsapi"
	"github.com/agentplatform/agentplatform/pkg/local/host"
	"github.com/agentplatform/agentplatform/pkg/local/realtime"
	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/pkg/schedule"
)

const (
	functionPrefix = "agentplatform-local-"
	signingKeyID   = "agentplatform-local-anchors" // in the functions' KMS
	interpreterID  = "agentplatform-local-sandbox" // their code interpreter
	accessKey      = "platform"                    // the platform's own, of object storage and of what else functions find in place of AWS

	// coldStart is what a caller of a function in a process of its own waits beyond the function's timeout: for an instance to start, or to become free.
	coldStart = time.Minute

	maxInstances = 48 // an instance has a connection to the database, some two; the platform's own PostgreSQL takes 100

	// mostOfOne is how many instances a function has at most: those of the HTTP GraphQL function wait for others, and must leave room for them.
	mostOfOne = maxInstances / 4
)

// openHost takes the functions' binaries, if they are to run in processes of their own. It starts none.
func (p *Platform) openHost() (err error) {
	if p.config.Functions == "" {
		return nil
	}
	if p.config.Signal != nil {
		return errors.New("functions in processes of their own have no crash points")
	}
	p.host, err = host.New(host.Config{Dir: p.config.Functions, Functions: host.Functions(p.config.Rows), Environment: p.environment, Prefix: functionPrefix,
		Region: region, StartLimit: coldStart, Instances: maxInstances, Concurrency: min(max(4, 2*runtime.NumCPU()), mostOfOne)})
	if err != nil {
		return err
	}
	p.aws, err = newListener(0, "")
	return err
}

// functions makes all functions: in this process, or behind their binaries.
func (p *Platform) functions(hub *realtime.Hub) (map[string]lambda.Handler, error) {
	if p.host == nil {
		return handler.Build(p.config.Rows, p.config.Table, p.ports(hub)), nil
	}
	if p.model.endpoint == "" {
		return nil, errors.New("functions in processes of their own ask the offline model, or the one at AWS_ENDPOINT_URL_BEDROCK_RUNTIME; for Bedrock itself leave -functions out")
	}
	var kept []awsapi.Secrets
	for _, c := range p.kept {
		kept = append(kept, awsapi.Secrets{Prefix: c.prefix(), KeyID: c.keyID(), Store: c.store})
	}
	p.aws.serve(awsapi.New(awsapi.Config{AccessKey: accessKey, Secret: p.secrets.get("S3_ROOT_SECRET"), KeyID: signingKeyID, Signer: p.signer, Publisher: hub,
		Lambda: &host.API{Prefix: functionPrefix, Invoke: p.host.Invoke, Event: p.event}, Cognito: p.pool.Admin(),
		Secrets: kept, Workflow: p.engine, Machines: machines, Clock: p.clock, ScheduleGroup: scheduleGroup, ScheduleTarget: machines + schedule.AutoThread,
		InterpreterID: interpreterID, Sandbox: p.programs, Mail: p.sent, MailFrom: mailFrom, Push: p.sent}), p.failed)
	all := map[string]lambda.Handler{}
	for _, row := range p.config.Rows.Rows {
		all[row.Name] = p.host.Handler(row.Name)
	}
	return all, nil
}

// caller has functions ask those beside them. The rows' timeouts are for whoever asks to keep: the HTTP GraphQL function's gateway, a turn's tool.
type caller struct{ platform *Platform }

// Call implements invoke.Caller.
func (c caller) Call(ctx context.Context, function string, payload []byte) ([]byte, error) {
	h := c.platform.queue.functions[function]
	if h == nil {
		return nil, fmt.Errorf("no function %q", function)
	}
	return h.Invoke(ctx, payload)
}

// event takes an asynchronous invoke of a function.
func (p *Platform) event(ctx context.Context, name string, payload []byte) error {
	return p.queue.Invoke(ctx, name, json.RawMessage(payload))
}

// environment is what a function is told: as a deployment tells it, with this platform in AWS's place.
func (p *Platform) environment(name string) []string {
	row, _ := p.config.Rows.Row(name)
	var runtimes []string
	for selector, target := range p.config.Runtimes {
		runtimes = append(runtimes, selector+"="+target.URL)
	}
	env := []string{
		"AGENT_RUNTIMES=" + strings.Join(runtimes, ","),
		"AWS_ACCESS_KEY_ID=" + accessKey, "AWS_SECRET_ACCESS_KEY=" + p.secrets.get("S3_ROOT_SECRET"), "AWS_ENDPOINT_URL=" + p.aws.url("http"),
		"AWS_ENDPOINT_URL_S3=" + p.objects.Endpoint(), "AWS_ENDPOINT_URL_BEDROCK_RUNTIME=" + p.model.endpoint,
		"APPSYNC_URL=" + p.aws.url("http"), "FUNCTION_PREFIX=" + functionPrefix, "USER_POOL_ID=" + p.pool.ID(), "DEFAULT_MODEL_ID=" + p.modelID(),
		"SERVICE_PLATFORM_OPERATOR_EMAILS=" + p.config.Operators, "ANCHOR_SIGNING_KEY_ID=" + signingKeyID, "ANCHOR_BUCKET=" + anchorBucket,
		"EXPORTS_BUCKET=" + exportsBucket, "ANCHOR_ORIGIN=" + anchorOrigin, "ANCHOR_INTERVAL=" + p.config.AnchorInterval.String(),
		"ANCHOR_RETENTION=" + anchorRetention.String(), "ANCHOR_WITNESS_URL=" + p.config.WitnessURL, "ANCHOR_WITNESS_KEY=" + p.config.WitnessKey,
	}
	add := func(need, setting, value string) {
		if row.Has(need) {
			env = append(env, setting+"="+value)
		}
	}
	add("db", "DATABASE_URL", p.database.url(appRole))
	add("db:reader", "DATABASE_READER_URL", p.database.url(readerRole))
	add("db:ledger", "DATABASE_LEDGER_URL", p.database.url(ledgerRole))
	add("db:owner", "DATABASE_OWNER_URL", p.database.owner)
	add("sandbox", "CODE_INTERPRETER_ID", interpreterID)
	for _, c := range p.kept {
		for _, need := range c.needs {
			add(need, c.setting+"_PREFIX", c.prefix())
			add(need, c.setting+"_KEY_ID", c.keyID())
		}
	}
	add("push:send", "PUSH_APPLICATIONS", pushApplications())
	add("push:devices", "PUSH_APPLICATIONS", pushApplications())
	add("object:mail:read", "MAIL_BUCKET", mailBucket)
	add("mail-in", "MAIL_DOMAIN", mailDomain)
	add("clock", "SCHEDULE_GROUP", scheduleGroup)
	add("clock", "SCHEDULE_TARGET_ARN", machines+schedule.AutoThread)
	add("clock", "SCHEDULE_ROLE_ARN", schedulesRole)
	for _, need := range []string{"workflow:machines", "workflow:runs", "workflow:runs:read", "workflow:tasks"} {
		add(need, "WORKFLOW_ROLE_ARN", workflowRole)
	}
	add("mail-from", "MAIL_FROM", mailFrom)
	add("egress", "EGRESS_LOOPBACK", "true")
	add("page-key", "PAGE_TOKEN_KEY", p.secrets.get("PAGE_TOKEN_KEY"))
	add("audit", "AUDIT_EMISSION_KEY", p.secrets.get("AUDIT_EMISSION_KEY"))
	add("api-secret", "API_AUTH_SECRET", p.secrets.get("API_AUTH_SECRET"))
	return env
}

// pushApplications is the setting of functions that push.
func pushApplications() string {
	var all []string
	for platform, arn := range awsapi.Applications {
		all = append(all, string(platform)+"="+arn)
	}
	return strings.Join(all, ",")
}

// callers are the rows as those who call functions have them: a process of its own holds its timeout itself, and its caller waits longer.
func (p *Platform) callers() manifest.Manifest {
	if p.host == nil {
		return p.config.Rows
	}
	var rows manifest.Manifest
	for _, row := range p.config.Rows.Rows {
		row.Timeout += manifest.Seconds(coldStart.Seconds())
		rows.Rows = append(rows.Rows, row)
	}
	return rows
}

// told is an error of a trigger as its pool may tell it: Cognito hands a function's message on, and a fault's, which has the type Error there, is for callers to
// read.
func told(err error) error {
	var f *host.FunctionError
	if errors.As(err, &f) && f.Type == "Error" {
		return fault.New(fault.Forbidden, "%s", f.Message)
	}
	return err
}

// starts is how long functions took to start, for people to read: GET /local/functions.
func (p *Platform) starts() []byte {
	var b strings.Builder
	if p.host == nil {
		b.WriteString("the functions run in the platform's process\n")
		return []byte(b.String())
	}
	fmt.Fprintf(&b, "%-26s %9s %6s %10s %10s\n", "function", "instances", "starts", "p50", "max")
	for _, s := range p.host.Starts() {
		fmt.Fprintf(&b, "%-26s %9d %6d %10s %10s\n", s.Function, s.Instances, s.Starts, s.P50.Round(100*time.Microsecond), s.Max.Round(100*time.Microsecond))
	}
	return []byte(b.String())
}
