package main

import (
	"context"
	"encoding/json"
	"fmt"
)

// tenant is a tenant with an agent that has everything at work which a turn can have: tools with effects outside, some behind a person's approval, a
// guardrail, evaluators, and a budget.
type tenant struct {
	*user
	name  string
	agent string
}

// The seeded tenants and their owners.
var owners = []struct{ tenant, email string }{{"acme", "alice@acme.test"}, {"globex", "bob@globex.test"}}

// enter makes a tenant ready.
func (m *machine) enter(ctx context.Context, name, email string, b *book) (*tenant, error) {
	u, err := m.signIn(ctx, email)
	if err != nil {
		return nil, err
	}
	t := &tenant{user: u, name: name}
	var server struct {
		AddToolServer struct {
			Error *string
			Tools []struct{ Name string }
		}
	}
	if err := u.query(ctx, `mutation ($url: AWSURL!) { addToolServer(input: {name: "book", url: $url}) { error tools { name } } }`, vars{"url": b.server.URL}, &server); err != nil {
		return nil, err
	}
	if s := server.AddToolServer; s.Error != nil || len(s.Tools) != 3 {
		return nil, fmt.Errorf("the tool server lists %v, error %v", s.Tools, s.Error)
	}
	var guardrail struct{ CreateGuardrail struct{ ID string } }
	if err := u.query(ctx, `mutation { createGuardrail(input: {name: "No addresses", kind: RULES, rules: [{stages: [input], action: mask, builtIn: [EMAIL]}]}) { id } }`, nil, &guardrail); err != nil {
		return nil, err
	}
	var agent struct{ CreateAgent struct{ ID string } }
	err = u.query(ctx, `mutation ($guardrail: ID!) { createAgent(input: {name: "Clerk", tools: ["book__*", "ask_user", "start_routine"], toolApprovals: ["book__pay"], guardrailId: $guardrail,
		evaluators: [{type: length, minCharacters: 1}]}) { id } }`, vars{"guardrail": guardrail.CreateGuardrail.ID}, &agent)
	if err != nil {
		return nil, err
	}
	t.agent = agent.CreateAgent.ID
	return t, u.query(ctx, `mutation ($id: ID!) { setBudget(input: {scope: AGENT, scopeId: $id, monthlyUsd: "10000"}) { scope } }`, vars{"id": t.agent}, &json.RawMessage{})
}

// open opens a thread.
func (t *tenant) open(ctx context.Context, key string) (string, error) {
	var answer struct{ CreateThread struct{ ID string } }
	err := t.again(ctx, `mutation ($input: CreateThreadInput!) { createThread(input: $input) { id } }`, vars{"input": vars{"agentId": t.agent, "clientToken": key}}, &answer)
	return answer.CreateThread.ID, err
}
