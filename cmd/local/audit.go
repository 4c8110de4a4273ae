package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/agentplatform/agentplatform/pkg/local"
)

// audited is an audit event as the compliance API shows it.
type audited struct {
	EventID, EventType, EventHash string
	OccurredAt                    time.Time
	ChainPosition                 int
	Actor, ActorType              string
	TenantID                      string
	Anchor                        struct {
		Status    string
		CadenceID *string
	}
}

const auditedFields = `eventId eventType eventHash occurredAt chainPosition actor actorType tenantId anchor { status cadenceId }`

// showAudit prints what the audit log has of this start and the first conversation. The operator's own sign-in is the newest act: once it is in the
// chain, so is all before it. Without a seeded operator nobody may look.
func showAudit(ctx context.Context, p *local.Platform, since time.Time) (operator *client, newest string, err error) {
	if !slices.Contains(p.Operators(), local.Operator) {
		fmt.Printf("the audit log is for the platform operators that SERVICE_PLATFORM_OPERATOR_EMAILS names\n\n")
		return nil, "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	asked := time.Now()
	if operator, err = signIn(ctx, p.Outputs, local.Operator, p.Password); err != nil {
		return nil, "", fmt.Errorf("signing in as the platform operator: %w", err)
	}
	var list []audited
	for len(list) == 0 || list[0].OccurredAt.Before(asked) {
		var answer struct {
			ComplianceEvents struct{ Items []audited }
		}
		if err := operator.query(ctx, `query ($from: AWSDateTime) { complianceEvents(filter: {from: $from}, limit: 20) { items { `+auditedFields+` } } }`,
			map[string]any{"from": since.UTC().Format("2006-01-02T15:04:05.000000Z")}, &answer); err != nil {
			return nil, "", fmt.Errorf("reading the audit log: %w", err)
		}
		list = answer.ComplianceEvents.Items
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, "", fmt.Errorf("the conversation's events do not reach the audit log: %w", ctx.Err())
		}
	}
	fmt.Println("audit log, newest first: what happened, in which chain and where in it, its hash")
	for _, e := range list {
		fmt.Printf("  %s  %-20s  %-8s  %-6s %-3d  %s…\n", e.OccurredAt.Format("15:04:05.000000"), e.EventType, e.Anchor.Status, local.TenantSlug(e.TenantID), e.ChainPosition, e.EventHash[:16])
	}
	fmt.Println()
	return operator, list[0].EventID, nil
}

// showAnchor prints the anchor that covers an event, once it is published.
func showAnchor(ctx context.Context, operator *client, eventID string) error {
	for operator != nil {
		var answer struct{ ComplianceEvent audited }
		if err := operator.query(ctx, `query ($id: ID!) { complianceEvent(eventId: $id) { `+auditedFields+` } }`, map[string]any{"id": eventID}, &answer); err != nil {
			return err
		}
		if id := answer.ComplianceEvent.Anchor.CadenceID; id != nil {
			fmt.Printf("\n%s is published: it covers the first conversation's events\n", *id)
			return nil
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
