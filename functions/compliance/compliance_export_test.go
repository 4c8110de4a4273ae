package compliance_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/functions/compliance"
	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

func (c *console) create(claims tenant.Claims, input fields) (fields, *fault.Error) {
	c.t.Helper()
	return handlertest.Call[fields](c.t, c.Platform, "create-compliance-export", compliance.CreateComplianceExport, claims, fields{"input": input})
}

func (c *console) link(jobID any) (fields, *fault.Error) {
	c.t.Helper()
	return ask[fields](c, "compliance-export-link", compliance.ComplianceExportLink, fields{"jobId": jobID})
}

// runs invokes run-export.
func (c *console) runs(payload string) {
	c.t.Helper()
	_, err := compliance.RunExport(c.Env(c.t, "run-export")).Invoke(c.t.Context(), []byte(payload))
	require.NoError(c.t, err)
}

// recorded is the one event that was recorded in a tenant.
func (c *console) recorded(tenantID string) audit.Envelope {
	c.t.Helper()
	var text []byte
	require.NoError(c.t, c.DB.Superuser(c.t).QueryRow(c.t.Context(), `select envelope from audit_outbox where tenant_id = $1`, tenantID).Scan(&text))
	e, err := audit.ParseEnvelope(text)
	require.NoError(c.t, err)
	return e
}

// TestExport: asked for, recorded, run, had, expired.
func TestExport(t *testing.T) {
	c := newConsole(t).withBuckets()
	e := c.log.Append(audit.Event{TenantID: c.acme.TenantID, OccurredAt: ago(time.Hour)}, audit.Event{TenantID: c.globex.TenantID, OccurredAt: ago(time.Hour)})
	from := ago(2 * time.Hour).String()
	job, refused := c.create(operator, fields{"filter": fields{"tenantId": c.acme.TenantID, "eventType": "agent.created", "from": from}})
	require.Nil(t, refused)
	id := job["id"].(string)
	require.Equal(t, []any{"Queued", "CSV", "ops@acme.test", nil, nil, nil}, []any{job["status"], job["format"], job["requestedBy"], job["startedAt"], job["rows"], job["error"]})
	var filter fields
	require.NoError(t, json.Unmarshal([]byte(job["filter"].(string)), &filter))
	require.Equal(t, from, filter["from"])
	require.NotEmpty(t, filter["to"])
	require.ElementsMatch(t, []string{"drain-outbox", "run-export"}, c.Invoked())

	record := c.recorded(c.acme.TenantID)
	require.Equal(t, []any{audit.ExportInitiated, "ops@acme.test", audit.ActorUser, audit.SourceGraphQL, "export", id, "test"},
		[]any{record.Type, record.Actor, record.ActorType, record.Source, record.ResourceType, record.ResourceID, record.RequestID})
	var payload fields
	require.NoError(t, json.Unmarshal(record.Payload, &payload))
	require.Equal(t, fields{"exportJobId": id, "format": "CSV", "filter": filter, "requestedBy": "ops@acme.test"}, payload)

	_, refused = c.link(id)
	require.Equal(t, fault.Invalid("the export is Queued: it has a link once it is Complete"), refused)

	c.runs(`{"jobId":"` + id + `"}`)
	link, refused := c.link(id)
	require.Nil(t, refused)
	require.Equal(t, "compliance-event-"+id+".csv", link["fileName"])
	status, file, disposition := fetch(t, link["url"].(string))
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, `attachment; filename=compliance-event-`+id+`.csv`, disposition)
	records, err := csv.NewReader(strings.NewReader(file)).ReadAll()
	require.NoError(t, err)
	require.Len(t, records, 2)
	require.Equal(t, e[0].EventID, records[1][0])
	status, manifest, _ := fetch(t, link["manifestUrl"].(string))
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, manifest, `"rows":1`)

	page := must[eventPage](c, "compliance-exports", compliance.ComplianceExports, fields{})
	require.Len(t, page.Items, 1)
	shown := page.Items[0]
	require.Equal(t, []any{"Complete", 1.0, float64(len(file))}, []any{shown["status"], shown["rows"], shown["bytes"]})
	finished, err := time.Parse(ident.TimeLayout, shown["finishedAt"].(string))
	require.NoError(t, err)
	require.Equal(t, ident.Time{Time: finished.Add(15 * time.Minute)}.String(), link["expiresAt"])

	// It ends 15 minutes after the job did, whenever the link was made: also one that was made just before.
	super := c.DB.Superuser(t)
	_, err = super.Exec(t.Context(), `update export_jobs set finished_at = clock_timestamp() - interval '14 minutes 54 seconds'`)
	require.NoError(t, err)
	link, refused = c.link(id)
	require.Nil(t, refused)
	require.Eventually(t, func() bool {
		status, _, _ := fetch(t, link["url"].(string))
		return status == http.StatusForbidden
	}, time.Minute, 100*time.Millisecond)
	_, err = super.Exec(t.Context(), `update export_jobs set finished_at = clock_timestamp() - interval '15 minutes'`)
	require.NoError(t, err)
	_, refused = c.link(id)
	require.Equal(t, fault.ValidationError, refused.Type)
	require.Contains(t, refused.Message, "create a new export")
	require.Len(t, must[eventPage](c, "compliance-exports", compliance.ComplianceExports, fields{}).Items, 1, "the row stays")

	_, err = super.Exec(t.Context(), `update export_jobs set status = 'Failed', error = 'the reason'`)
	require.NoError(t, err)
	_, refused = c.link(id)
	require.Equal(t, fault.Invalid("the export failed (the reason): create a new export"), refused)
	for _, id := range []string{ident.New(), "x"} {
		_, refused = c.link(id)
		require.Equal(t, fault.Missing("export"), refused)
	}
}

// TestExportIsRecordedSomewhere: an export of all tenants in the operator's own chain, and never in none.
func TestExportIsRecordedSomewhere(t *testing.T) {
	c := newConsole(t)
	member := handlertest.Claims(c.globex, tenant.Member)
	member["email"] = "ops@acme.test"
	job, refused := c.create(member, fields{"format": "NDJSON"})
	require.Nil(t, refused)
	require.Equal(t, "NDJSON", job["format"])
	record := c.recorded(c.globex.TenantID)
	require.Equal(t, c.globex.UserID, record.Actor)
	require.Equal(t, job["id"], record.ResourceID)

	_, refused = c.create(member, fields{"filter": fields{"tenantId": strings.ToUpper(c.acme.TenantID)}})
	require.Nil(t, refused)
	require.Equal(t, c.globex.UserID, c.recorded(c.acme.TenantID).Actor, "in the chain of the tenant that is exported")

	_, refused = c.create(operator, fields{})
	require.Equal(t, fault.ValidationError, refused.Type)
	_, refused = c.create(operator, fields{"filter": fields{"tenantId": ident.New()}})
	require.Equal(t, fault.Missing("tenant"), refused)
	for name, input := range map[string]fields{
		"format": {"format": "XLSX", "filter": fields{"tenantId": c.acme.TenantID}},
		"window": {"filter": fields{"tenantId": c.acme.TenantID, "from": ago(91 * 24 * time.Hour)}},
		"filter": {"filter": fields{"tenantId": c.acme.TenantID, "actor": strings.Repeat("x", 4096)}},
		"type":   {"filter": fields{"tenantId": 7}},
	} {
		_, refused = c.create(operator, input)
		require.Equal(t, fault.ValidationError, refused.Type, name)
	}
	require.Len(t, must[eventPage](c, "compliance-exports", compliance.ComplianceExports, fields{}).Items, 2, "what is refused leaves nothing")
}

// TestExportWithoutRecord: what cannot be recorded is not done.
func TestExportWithoutRecord(t *testing.T) {
	c := newConsole(t)
	repair := c.BreakOutbox(t)
	input := fields{"filter": fields{"tenantId": c.acme.TenantID}}
	_, refused := c.create(operator, input)
	require.Equal(t, fault.InternalError, refused.Type)
	repair()
	require.Empty(t, must[eventPage](c, "compliance-exports", compliance.ComplianceExports, fields{}).Items)
	require.Empty(t, c.Invoked())
	_, refused = c.create(operator, input)
	require.Nil(t, refused)
}

// TestExportsAnHour: of many requests at once ten are taken, and as many are recorded.
func TestExportsAnHour(t *testing.T) {
	c := newConsole(t)
	const asked = 15
	refusals := make(chan *fault.Error, asked)
	var wg sync.WaitGroup
	for i := range asked {
		wg.Go(func() {
			world := []string{c.acme.TenantID, c.globex.TenantID}[i%2]
			_, refused := c.create(operator, fields{"filter": fields{"tenantId": world}})
			refusals <- refused
		})
	}
	wg.Wait()
	limited := 0
	for range asked {
		if refused := <-refusals; refused != nil {
			require.Equal(t, fault.RateLimitExceeded, refused.Type)
			limited++
		}
	}
	require.Equal(t, asked-10, limited)
	var events int
	require.NoError(t, c.DB.Superuser(t).QueryRow(t.Context(), `select count(*) from audit_outbox`).Scan(&events))
	require.Equal(t, 10, events)

	// The list shows all of them, page by page, newest first.
	var times []string
	args := fields{"limit": 3}
	for {
		p := must[eventPage](c, "compliance-exports", compliance.ComplianceExports, args)
		for _, job := range p.Items {
			times = append(times, fmt.Sprint(job["requestedAt"], job["id"]))
		}
		if p.NextToken == nil {
			break
		}
		args["nextToken"] = *p.NextToken
	}
	require.Len(t, times, 10)
	require.IsDecreasing(t, times)
}

// TestRunExportOnTime: called by the clock, it starts what nobody runs.
func TestRunExportOnTime(t *testing.T) {
	c := newConsole(t).withBuckets()
	_, refused := c.create(operator, fields{"filter": fields{"tenantId": c.acme.TenantID}})
	require.Nil(t, refused)
	before := len(c.Invoked())
	c.runs(`{}`)
	require.Len(t, c.Invoked(), before, "its own invoke may still come")
	_, err := c.DB.Superuser(t).Exec(t.Context(), `update export_jobs set requested_at = requested_at - interval '1 minute'`)
	require.NoError(t, err)
	c.runs(`{"version":"0","detail-type":"Scheduled Event","detail":{}}`)
	require.Equal(t, "run-export", c.Invoked()[before])
}
