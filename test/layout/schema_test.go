package layout_test

import (
	"go/ast"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	gql "github.com/vektah/gqlparser/v2/ast"

	"github.com/agentplatform/agentplatform/schema"
)

// answers says which Go struct's JSON is an object type of the schema. A type may have several: a message as a query answers it, and as an
// event carries it.
var answers = map[string][]string{
	"Agent":                      {"pkg/agent.Agent"},
	"AgentTemplate":              {"pkg/agent.Template"},
	"RateLimits":                 {"pkg/agent.RateLimits"},
	"AgentConnection":            {"pkg/page.Page"},
	"AgentSetting":               {"pkg/agent.Setting"},
	"AgentTemplateConnection":    {"pkg/page.Page"},
	"Thread":                     {"pkg/thread.Thread"},
	"ThreadConnection":           {"pkg/page.Page"},
	"Message":                    {"pkg/thread.Message", "pkg/publish.Message"},
	"MessageConnection":          {"pkg/page.Page"},
	"ToolCall":                   {"pkg/thread.ToolCall", "pkg/publish.ToolCall"},
	"ToolResult":                 {"pkg/thread.ToolResult", "pkg/publish.ToolResult"},
	"Turn":                       {"pkg/turn.Turn"},
	"TurnStep":                   {"pkg/turn.Step"},
	"ToolApproval":               {"pkg/turn.ToolApproval"},
	"TurnConnection":             {"pkg/page.Page"},
	"TurnPhase":                  {"pkg/turn.Phase"},
	"GuardrailDecision":          {"pkg/guardrail.Record"},
	"GuardrailSpan":              {"pkg/guardrail.Span"},
	"Guardrail":                  {"pkg/guardrail.Guardrail"},
	"GuardrailRule":              {"pkg/guardrail.Rule"},
	"GuardrailPattern":           {"pkg/guardrail.Pattern"},
	"GuardrailTopic":             {"pkg/guardrail.Topic"},
	"GuardrailBedrock":           {"pkg/guardrail.Managed"},
	"GuardrailConnection":        {"pkg/page.Page"},
	"EvaluatorScore":             {"pkg/turn.EvaluatorScore"},
	"ThreadEventConnection":      {"pkg/notify.Page"},
	"Evaluator":                  {"pkg/evaluator.Spec"},
	"Evaluation":                 {"pkg/evaluation.Evaluation"},
	"EvaluationConnection":       {"pkg/page.Page"},
	"EvaluationCase":             {"pkg/evaluation.Case"},
	"EvaluationCaseConnection":   {"pkg/page.Page"},
	"EvaluationRun":              {"pkg/evaluation.Run"},
	"EvaluationRunConnection":    {"pkg/page.Page"},
	"EvaluationResult":           {"pkg/evaluation.Result"},
	"EvaluationResultConnection": {"pkg/page.Page"},
	"EvaluatorRate":              {"pkg/evaluation.Rate"},
	"EvaluationComparison":       {"pkg/evaluation.Comparison"},
	"EvaluatorRateDelta":         {"pkg/evaluation.RateDelta"},
	"EvaluationChange":           {"pkg/evaluation.Change"},
	"Integration":                {"pkg/integration.Integration"},
	"IntegrationConnection":      {"pkg/page.Page"},
	"Delivery":                   {"pkg/integration.Delivery"},
	"DeliveryConnection":         {"pkg/page.Page"},
	"Schedule":                   {"pkg/schedule.Schedule"},
	"ScheduleConnection":         {"pkg/page.Page"},
	"ScheduleLoop":               {"pkg/schedule.Loop"},
	"ScheduleLoopBudget":         {"pkg/schedule.LoopBudget"},
	"ScheduleRun":                {"pkg/schedule.Run"},
	"ScheduleRunConnection":      {"pkg/page.Page"},
	"ScheduleIteration":          {"pkg/schedule.Iteration"},
	"Routine":                    {"pkg/routine.Routine"},
	"RoutineConnection":          {"pkg/page.Page"},
	"RoutineVersion":             {"pkg/routine.Version"},
	"RoutineVersionConnection":   {"pkg/page.Page"},
	"RoutineRun":                 {"pkg/routine.Run"},
	"RoutineRunConnection":       {"pkg/page.Page"},
	"RoutineStarter":             {"pkg/routine.StartedBy"},
	"RoutineStep":                {"pkg/routine.Step"},
	"RoutineStepConnection":      {"pkg/page.Page"},
	"RoutineStepApproval":        {"pkg/routine.Approval"},
	"RoutineApproval":            {"pkg/routine/step.Approval"},
	"RoutineApprovalConnection":  {"pkg/page.Page"},
	"Budget":                     {"pkg/budget.Budget"},
	"BudgetConnection":           {"pkg/page.Page"},
	"BudgetWarning":              {"pkg/budget.Warning"},
	"Usage":                      {"pkg/budget.Usage"},
	"UsageRow":                   {"pkg/budget.Row"},
	"Retention":                  {"pkg/retention.Policy"},
	"NewMessageEvent":            {"pkg/publish.NewMessage"},
	"AgentStatusEvent":           {"pkg/publish.AgentStatus"},
	"ThreadUpdateEvent":          {"pkg/publish.ThreadUpdate"},
	"EventThread":                {"pkg/publish.Thread"},
	"StreamChunkEvent":           {"pkg/publish.StreamChunk"},
	"AgentActivityEvent":         {"pkg/publish.AgentActivity"},
	"ComplianceEvent":            {"functions/compliance.event"},
	"ComplianceAnchor":           {"functions/compliance.anchorState"},
	"ComplianceEventConnection":  {"pkg/page.Page"},
	"ComplianceVerification":     {"functions/compliance.verification"},
	"ComplianceCadence":          {"functions/compliance.cadence"},
	"ComplianceExport":           {"pkg/audit/export.Job"},
	"ComplianceExportConnection": {"pkg/page.Page"},
	"ComplianceExportLink":       {"functions/compliance.exportLink"},
	"Tenant":                     {"pkg/user.Tenant"},
	"User":                       {"pkg/user.User"},
	"UserConnection":             {"pkg/page.Page"},
	"ToolServer":                 {"pkg/toolserver.Server"},
	"ToolServerAuth":             {"pkg/toolserver.Auth"},
	"ToolServerTool":             {"pkg/toolserver.Tool"},
	"ToolServerConnection":       {"pkg/page.Page"},
	"Device":                     {"pkg/device.Device"},
	"DeviceConnection":           {"pkg/page.Page"},
	"Connection":                 {"pkg/connection.Connection"},
	"ConnectionConnection":       {"pkg/page.Page"},
	"ConnectionStart":            {"pkg/connection.Begun"},
	"GovernanceFile":             {"pkg/space.GovernanceFile"},
}

// sdl is the schema with AWS's scalars and directives; declared its own definitions.
func sdl(t *testing.T) (s *gql.Schema, declared []*gql.Definition) {
	t.Helper()
	s, err := gqlparser.LoadSchema(&gql.Source{Name: "prelude.graphql", Input: schema.Prelude}, &gql.Source{Name: "schema.graphql", Input: schema.SDL})
	require.NoError(t, err)
	for _, d := range s.Types {
		if d.Position != nil && d.Position.Src.Name == "schema.graphql" {
			declared = append(declared, d)
		}
	}
	slices.SortFunc(declared, func(a, b *gql.Definition) int { return strings.Compare(a.Name, b.Name) })
	return s, declared
}

func isRoot(s *gql.Schema, d *gql.Definition) bool {
	return d == s.Query || d == s.Mutation || d == s.Subscription
}

// fieldsOf are the fields that the schema declares: introspection's __schema and __type are the gateway's own.
func fieldsOf(d *gql.Definition) (fields gql.FieldList) {
	for _, f := range d.Fields {
		if !strings.HasPrefix(f.Name, "__") {
			fields = append(fields, f)
		}
	}
	return fields
}

// Every trigger `graphql Type.field` names a field of the schema; no two rows name the same.
func TestAGraphQLTriggerNamesAField(t *testing.T) {
	s, _ := sdl(t)
	seen := map[string]string{}
	for _, row := range rows(t).Rows {
		for _, on := range row.Triggers("graphql") {
			typ, field, _ := strings.Cut(on, ".")
			d := s.Types[typ]
			assert.True(t, d != nil && d.Fields.ForName(field) != nil, "%s: the schema has no field %s", row.Name, on)
			assert.Empty(t, seen[on], "%s and %s both answer %s", seen[on], row.Name, on)
			seen[on] = row.Name
		}
	}
}

// A field of Query, Mutation or Subscription is answered by a row. The one exception are the mutations for IAM principals, by which
// the platform publishes: AppSync hands their argument to the subscribers without any function.
func TestARootFieldHasARowOrPublishes(t *testing.T) {
	s, declared := sdl(t)
	byField := rows(t).ByGraphQL()
	for _, d := range declared {
		if !isRoot(s, d) {
			continue
		}
		for _, f := range fieldsOf(d) {
			_, answered := byField[d.Name+"."+f.Name]
			publishes := d == s.Mutation && f.Directives.ForName("aws_iam") != nil
			assert.NotEqual(t, publishes, answered, "%s.%s: has a row: %v, publishes (@aws_iam): %v; it must be one of them", d.Name, f.Name, answered, publishes)
		}
	}
}

// A subscription follows publish mutations, and each publish mutation has a subscription of its own type.
func TestASubscriptionFollowsAPublishMutation(t *testing.T) {
	s, _ := sdl(t)
	followed := map[string]bool{}
	for _, f := range s.Subscription.Fields {
		d := f.Directives.ForName("aws_subscribe")
		if !assert.NotNil(t, d, "Subscription.%s has no @aws_subscribe", f.Name) {
			continue
		}
		for _, name := range d.Arguments.ForName("mutations").Value.Children {
			m := s.Mutation.Fields.ForName(name.Value.Raw)
			if assert.NotNil(t, m, "Subscription.%s follows Mutation.%s, which does not exist", f.Name, name.Value.Raw) {
				assert.NotNil(t, m.Directives.ForName("aws_iam"), "Mutation.%s feeds subscribers: only the platform may call it", m.Name)
				assert.Equal(t, m.Type.String(), f.Type.String(), "Subscription.%s and Mutation.%s", f.Name, m.Name)
				followed[m.Name] = true
			}
		}
	}
	for _, m := range s.Mutation.Fields {
		if m.Directives.ForName("aws_iam") != nil {
			assert.True(t, followed[m.Name], "Mutation.%s publishes to nobody", m.Name)
		}
	}
}

// Any other field is answered by exactly one place: a row, or the member of that name in the JSON of its parent. A field with arguments
// has a row, for a member cannot hear them. Such a row is a batch row, for a list of parents must not cost a call each.
func TestANestedFieldHasARowOrIsAMemberOfItsParent(t *testing.T) {
	s, declared := sdl(t)
	byField := rows(t).ByGraphQL()
	for _, d := range declared {
		if d.Kind != gql.Object || isRoot(s, d) {
			continue
		}
		structs := answers[d.Name]
		assert.NotEmpty(t, structs, "no entry in answers (schema_test.go) for type %s", d.Name)
		var members []string // what is neither a member nor a row is missing; what is both is answered twice
		for _, f := range d.Fields {
			row, answered := byField[d.Name+"."+f.Name]
			if answered {
				assert.True(t, row.Batch, "%s answers the nested field %s.%s: make it a batch row", row.Name, d.Name, f.Name)
				continue
			}
			members = append(members, f.Name)
			assert.Empty(t, f.Arguments, "%s.%s has arguments, so it needs a row", d.Name, f.Name)
		}
		for _, name := range structs {
			assert.ElementsMatch(t, members, jsonOf(t, name), "fields of %s without a row against the JSON of %s", d.Name, name)
		}
	}
	for name := range answers {
		assert.NotNil(t, s.Types[name], "answers (schema_test.go) has %s, the schema has not", name)
	}
}

// jsonOf are the members of the JSON of a struct, named "pkg/thread.Thread".
func jsonOf(t *testing.T, name string) (members []string) {
	folder, typ, _ := strings.Cut(name, ".")
	found := false
	for _, s := range sources(t) {
		if s.folder() != folder || s.test() {
			continue
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || spec.Name.Name != typ {
				return true
			}
			if body, ok := spec.Type.(*ast.StructType); ok {
				found = true
				members = membersOf(t, name, body)
			}
			return false
		})
	}
	require.True(t, found, "there is no struct %s", name)
	return members
}

func membersOf(t *testing.T, name string, body *ast.StructType) (members []string) {
	for _, f := range body.Fields.List {
		require.NotEmpty(t, f.Names, "%s embeds a struct: an answer names its members", name)
		if !f.Names[0].IsExported() {
			continue
		}
		require.NotNil(t, f.Tag, "%s.%s has no json tag", name, f.Names[0].Name)
		tag, err := strconv.Unquote(f.Tag.Value)
		require.NoError(t, err)
		if member, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ","); member != "-" {
			members = append(members, member)
		}
	}
	return members
}

// A union's members carry what AppSync filters by.
func TestAnEventCarriesTenantAndThread(t *testing.T) {
	s, declared := sdl(t)
	for _, d := range declared {
		if d.Kind != gql.Union {
			continue
		}
		for _, member := range d.Types {
			for _, name := range []string{"tenantId", "threadId"} {
				f := s.Types[member].Fields.ForName(name)
				assert.True(t, f != nil && f.Type.NonNull, "%s, a member of %s, has no %s", member, d.Name, name)
			}
		}
	}
}

// Who reads the schema in a client's explorer learns from it alone what each operation, type, enum, input, union and directive is.
func TestTheSchemaDescribesItself(t *testing.T) {
	s, declared := sdl(t)
	for _, d := range declared {
		if !isRoot(s, d) {
			assert.NotEmpty(t, d.Description, "%s %s has no description", d.Kind, d.Name)
			continue
		}
		for _, f := range fieldsOf(d) {
			assert.NotEmpty(t, f.Description, "%s.%s has no description", d.Name, f.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Directives)) {
		if d := s.Directives[name]; d.Position != nil && d.Position.Src.Name == "prelude.graphql" {
			assert.NotEmpty(t, d.Description, "@%s has no description", name)
		}
	}
}
