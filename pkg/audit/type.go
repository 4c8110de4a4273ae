package audit

import (
	"maps"
	"slices"
)

// Type is what happened, as a dotted name.
type Type string

// The recorded types.
const (
	SignInSucceeded      Type = "auth.signin.success"
	SignInFailed         Type = "auth.signin.failure"
	SignedOut            Type = "auth.signout"
	UserInvited          Type = "user.invited"
	UserCreated          Type = "user.created"
	UserDisabled         Type = "user.disabled"
	UserDeleted          Type = "user.deleted"
	AgentCreated         Type = "agent.created"
	AgentDeleted         Type = "agent.deleted"
	AgentSkillsChanged   Type = "agent.skills_changed"
	ToolServerAdded      Type = "mcp.added"
	ToolServerRemoved    Type = "mcp.removed"
	GovernanceFileEdited Type = "workspace.governance_file_edited"
	ExportInitiated      Type = "data.export_initiated"
)

// The reserved types: known, so that nobody uses the names for something else, but not recorded yet.
const (
	PolicyEvaluated  Type = "policy.evaluated"
	PolicyAllowed    Type = "policy.allowed"
	PolicyBlocked    Type = "policy.blocked"
	PolicyBypassed   Type = "policy.bypassed"
	ApprovalRecorded Type = "approval.recorded"
)

// shape is what a payload field may hold. A value of another shape is dropped like a field that is not listed, for inside it could be
// anything.
type shape int

const (
	scalar  shape = iota + 1 // a string, an integer or a boolean
	scalars                  // a list of these, or one
	web                      // the text of a URL, which loses what gives access
	tree                     // anything, scrubbed at every depth
)

// rule is the allow-list of one type's payload.
type rule map[string]shape

// rules is the one list of types: a recorded type has a rule, a reserved one has none. Envelope refuses a type that is not here, and a test
// holds the constants to it.
var rules = map[Type]rule{
	SignInSucceeded:      {"userId": scalar, "method": scalar, "ip": scalar, "userAgent": scalar},
	SignInFailed:         {"email": scalar, "method": scalar, "reason": scalar, "ip": scalar},
	SignedOut:            {"userId": scalar, "sessionId": scalar},
	UserInvited:          {"email": scalar, "role": scalar, "invitedBy": scalar},
	UserCreated:          {"userId": scalar, "email": scalar, "role": scalar},
	UserDisabled:         {"userId": scalar, "reason": scalar},
	UserDeleted:          {"userId": scalar, "reason": scalar},
	AgentCreated:         {"agentId": scalar, "name": scalar, "templateId": scalar},
	AgentDeleted:         {"agentId": scalar, "reason": scalar},
	AgentSkillsChanged:   {"agentId": scalar, "addedSkills": scalars, "removedSkills": scalars},
	ToolServerAdded:      {"mcpId": scalar, "url": web, "scopes": scalars},
	ToolServerRemoved:    {"mcpId": scalar, "url": web},
	GovernanceFileEdited: {"file": scalar, "spaceId": scalar, "contentSha256": scalar, "preview": scalar},
	ExportInitiated:      {"exportJobId": scalar, "format": scalar, "filter": tree, "requestedBy": scalar},
	PolicyEvaluated:      nil,
	PolicyAllowed:        nil,
	PolicyBlocked:        nil,
	PolicyBypassed:       nil,
	ApprovalRecorded:     nil,
}

// Types are all types, recorded and reserved, in the order of their names.
func Types() []Type { return slices.Sorted(maps.Keys(rules)) }

// Fields are the payload's fields that are kept, in the order of their names.
func (t Type) Fields() []string { return slices.Sorted(maps.Keys(rules[t])) }

// Recorded reports whether events of this type are recorded.
func (t Type) Recorded() bool { return len(rules[t]) > 0 }

// Reserved reports whether the type is known but not recorded yet.
func (t Type) Reserved() bool {
	r, known := rules[t]
	return known && len(r) == 0
}

// ActorType is what the actor is.
type ActorType string

// The actor types.
const (
	ActorUser   ActorType = "user"   // actor is a user's id
	ActorSystem ActorType = "system" // the platform itself
	ActorAgent  ActorType = "agent"
)

// Valid reports whether a is one of the actor types.
func (a ActorType) Valid() bool { return a == ActorUser || a == ActorSystem || a == ActorAgent }

// Source is by which way the act came.
type Source string

// The sources.
const (
	SourceGraphQL   Source = "graphql"
	SourceREST      Source = "rest"
	SourceRuntime   Source = "runtime" // an agent runtime, by POST /api/compliance/events
	SourceScheduler Source = "scheduler"
	SourceSystem    Source = "system" // the platform itself, for example the identity pool's triggers
)

// Valid reports whether s is one of the sources.
func (s Source) Valid() bool {
	switch s {
	case SourceGraphQL, SourceREST, SourceRuntime, SourceScheduler, SourceSystem:
		return true
	}
	return false
}
