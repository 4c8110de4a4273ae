package audit

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/audit/canonical"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
)

const (
	tenantID = "01890a5d-ac96-774b-bcce-b302099a8057"
	eventID  = "01890a5d-ac96-774b-bcce-b302099a8058"
	agentID  = "01890a5d-ac96-774b-bcce-b302099a8059"
	threadID = "01890a5d-ac96-774b-bcce-b302099a805a"
)

func at(t testing.TB, text string) ident.Time {
	var out ident.Time
	require.NoError(t, out.UnmarshalJSON([]byte(`"`+text+`"`)))
	return out
}

// created is an event with every member.
func created(t testing.TB) Event {
	return Event{EventID: eventID, TenantID: tenantID, OccurredAt: at(t, "2026-03-01T12:00:00.123456Z"), Actor: agentID, ActorType: ActorUser, Source: SourceGraphQL,
		Type: AgentCreated, ResourceType: "agent", ResourceID: agentID, ThreadID: threadID, AgentID: agentID, RequestID: "JKJaXmPLvHcESHA=",
		Payload: map[string]any{"agentId": agentID, "name": "Ada \"<é>\"", "templateId": nil, "systemPrompt": "hush", "model": 7}}
}

const (
	head    = `{"actor":"` + agentID + `","actor_type":"user","agent_id":"` + agentID + `","event_id":"` + eventID + `","event_type":"agent.created","occurred_at":"2026-03-01T12:00:00.123456Z","payload":{"agentId":"` + agentID + `","name":"Ada \"<é>\""},`
	tail    = `"redacted_fields":["model","systemPrompt"],"request_id":"JKJaXmPLvHcESHA=","resource_id":"` + agentID + `","resource_type":"agent","schema_version":1,"source":"graphql","tenant_id":"` + tenantID + `","thread_id":"` + threadID + `"}`
	pending = head + tail
	chained = head + `"recorded_at":"2026-03-01T12:00:01.000000Z",` + tail
	minimal = `{"actor":"pool","actor_type":"system","event_id":"` + eventID + `","event_type":"auth.signout","occurred_at":"2026-03-01T12:00:00.000000Z","payload":{},"schema_version":1,"source":"system","tenant_id":"` + tenantID + `"}`
)

func TestAnEventHasOneText(t *testing.T) {
	env, err := created(t).Envelope()
	require.NoError(t, err)
	text, err := env.Append([]byte("before "))
	require.NoError(t, err)
	require.Equal(t, "before "+pending, string(text))
	require.NoError(t, canonical.Check([]byte(pending)))

	env.RecordedAt = at(t, "2026-03-01T12:00:01Z")
	text, err = env.Append(nil)
	require.NoError(t, err)
	require.Equal(t, chained, string(text))

	small, err := Event{EventID: eventID, TenantID: tenantID, OccurredAt: at(t, "2026-03-01T12:00:00Z"), Actor: "pool", ActorType: ActorSystem, Source: SourceSystem, Type: SignedOut}.Envelope()
	require.NoError(t, err)
	text, err = small.Append(nil)
	require.NoError(t, err)
	require.Equal(t, minimal, string(text))
}

func TestRecordedAtGoesInAndOut(t *testing.T) {
	for _, without := range []string{pending, minimal} {
		with, err := WithRecordedAt([]byte("x"), []byte(without), at(t, "2026-03-01T12:00:01Z"))
		require.NoError(t, err)
		require.NoError(t, canonical.Check(with[1:]))
		env, err := ParseEnvelope(with[1:])
		require.NoError(t, err)
		require.Equal(t, "2026-03-01T12:00:01.000000Z", env.RecordedAt.String())
		again, err := Pending([]byte("y"), with[1:])
		require.NoError(t, err)
		require.Equal(t, "y"+without, string(again))
		_, err = WithRecordedAt(nil, with[1:], ident.Now())
		require.ErrorContains(t, err, "recorded before")
		_, err = Pending(nil, []byte(without))
		require.ErrorContains(t, err, "no recorded_at")
		_, err = WithRecordedAt(nil, []byte(without), ident.Time{})
		require.Error(t, err)
	}
	for _, text := range []string{"", "{}", "[]", `{"actor":"a"}`} {
		_, err := WithRecordedAt(nil, []byte(text), ident.Now())
		require.Error(t, err, text)
		_, err = Pending(nil, []byte(text))
		require.Error(t, err, text)
	}
}

// The MAC is the one of RFC 2104 libraries everywhere for this famous pair.
func TestChainAndMAC(t *testing.T) {
	require.Equal(t, hashOf(minimal+"GENESIS"), Hash([]byte(minimal), Genesis))
	first := Hash([]byte(minimal), Genesis)
	require.Equal(t, hashOf(chained+first), Hash([]byte(chained), first))
	require.Equal(t, "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8", Receipt(MAC([]byte("key"), []byte("The quick brown fox jumps over the lazy dog"))))
}

func TestParseTakesOnlyWhatAppendWrites(t *testing.T) {
	for _, text := range []string{pending, chained, minimal} {
		env, err := ParseEnvelope([]byte(text))
		require.NoError(t, err)
		again, err := env.Append(nil)
		require.NoError(t, err)
		require.Equal(t, text, string(again))
	}
	for name, change := range map[string][2]string{
		"space":                      {`{"actor"`, `{ "actor"`},
		"order":                      {`{"actor":"pool","actor_type":"system",`, `{"actor_type":"system","actor":"pool",`},
		"unknown member":             {`"payload":{}`, `"payload":{},"position":1`},
		"null":                       {`"payload":{}`, `"agent_id":null,"payload":{}`},
		"null in its place":          {`"actor_type":"system",`, `"actor_type":"system","agent_id":null,`},
		"empty optional":             {`"actor_type":"system",`, `"actor_type":"system","agent_id":"",`},
		"no actor":                   {`"actor":"pool",`, ``},
		"empty actor":                {`"pool"`, `""`},
		"long actor":                 {`"pool"`, `"` + strings.Repeat("a", MaxText+1) + `"`},
		"no actor_type":              {`"actor_type":"system",`, ``},
		"other actor_type":           {`"system","event`, `"robot","event`},
		"no event_id":                {`"event_id":"` + eventID + `",`, ``},
		"upper-case id":              {eventID, strings.ToUpper(eventID)},
		"UUIDv4":                     {eventID, "01890a5d-ac96-474b-bcce-b302099a8058"},
		"other variant":              {eventID, "01890a5d-ac96-774b-ccce-b302099a8058"},
		"no type":                    {`"event_type":"auth.signout",`, ``},
		"unknown type":               {"auth.signout", "auth.signup"},
		"reserved type":              {"auth.signout", "policy.allowed"},
		"no time":                    {`"occurred_at":"2026-03-01T12:00:00.000000Z",`, ``},
		"time in milliseconds":       {"00.000000Z", "00.000Z"},
		"time with an offset":        {"00.000000Z", "00.0000+00"},
		"30 February":                {"2026-03-01", "2026-02-30"},
		"hour 24":                    {"T12:", "T24:"},
		"leap second":                {":00:00.0", ":00:60.0"},
		"the zero time":              {`"payload":{}`, `"payload":{},"recorded_at":"0001-01-01T00:00:00.000000Z"`},
		"no payload":                 {`"payload":{},`, ``},
		"payload of another kind":    {`{},`, `[],`},
		"recorded_at of a number":    {`{},`, `{},"recorded_at":1,`},
		"redacted_fields, none":      {`{},`, `{},"redacted_fields":[],`},
		"redacted_fields, order":     {`{},`, `{},"redacted_fields":["b","a"],`},
		"redacted_fields, twice":     {`{},`, `{},"redacted_fields":["a","a"],`},
		"redacted_fields, number":    {`{},`, `{},"redacted_fields":[1],`},
		"redacted_fields, then one":  {`{},`, `{},"redacted_fields":["a",1],`},
		"redacted_fields, a string":  {`{},`, `{},"redacted_fields":"a",`},
		"redacted_fields, an object": {`{},`, `{},"redacted_fields":{"a":1},`},
		"no version":                 {`"schema_version":1,`, ``},
		"version 2":                  {`"schema_version":1`, `"schema_version":2`},
		"version as text":            {`"schema_version":1`, `"schema_version":"1"`},
		"other source":               {`"source":"system"`, `"source":"email"`},
		"no tenant":                  {`,"tenant_id":"` + tenantID + `"`, ``},
		"tenant that is none":        {tenantID, "acme"},
		"public thread id":           {`"}`, `","thread_id":"CHAT-1"}`},
		"something behind":           {`"}`, `"} `},
	} {
		broken := strings.Replace(minimal, change[0], change[1], 1)
		require.NotEqual(t, minimal, broken, name)
		_, err := ParseEnvelope([]byte(broken))
		require.Error(t, err, name)
	}
	for _, text := range []string{"", "1", "{}", "[]", `"`, "null"} {
		_, err := ParseEnvelope([]byte(text))
		require.Error(t, err, text)
	}
}

func TestWhatACallerGetsWrongIsAFault(t *testing.T) {
	for name, c := range map[string]struct {
		change func(e *Event)
		detail string
	}{
		"reserved":      {func(e *Event) { e.Type = PolicyBypassed }, "event_type policy.bypassed is reserved"},
		"unknown":       {func(e *Event) { e.Type = "agent.renamed" }, "event_type is not one that is recorded"},
		"no type":       {func(e *Event) { e.Type = "" }, "event_type is not one that is recorded"},
		"event id":      {func(e *Event) { e.EventID = "1" }, "event_id must be a lower-case UUIDv7"},
		"tenant":        {func(e *Event) { e.TenantID = "" }, "tenant_id must be a lower-case UUID"},
		"thread":        {func(e *Event) { e.ThreadID = "CHAT-1" }, "thread_id must be a lower-case UUID"},
		"agent":         {func(e *Event) { e.AgentID = "Ada" }, "agent_id must be a lower-case UUID"},
		"actor":         {func(e *Event) { e.Actor = "" }, "actor is missing"},
		"actor's text":  {func(e *Event) { e.Actor = "\xff" }, "actor must be valid UTF-8"},
		"actor's size":  {func(e *Event) { e.Actor = strings.Repeat("é", 101) }, "actor is longer than 200 bytes"},
		"actor type":    {func(e *Event) { e.ActorType = "" }, "actor_type must be user, system or agent"},
		"source":        {func(e *Event) { e.Source = "" }, "source must be graphql, rest, runtime, scheduler or system"},
		"year":          {func(e *Event) { e.OccurredAt = ident.Time{Time: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)} }, "occurred_at must lie in the years 1 to 9999"},
		"text":          {func(e *Event) { e.Payload["name"] = "\xc0" }, "payload.name must be valid UTF-8"},
		"surrogate":     {func(e *Event) { e.Payload["name"] = "\xed\xa0\x80" }, "payload.name must be valid UTF-8"},
		"field's text":  {func(e *Event) { e.Payload["\xff"] = 1 }, "the name of a payload field must be valid UTF-8"},
		"fraction":      {func(e *Event) { e.Payload["name"] = 0.5 }, "payload.name: a number must be an integer within ±(2^53−1)"},
		"minus zero":    {func(e *Event) { e.Payload["name"] = json.Number("-0") }, "payload.name: a number must be"},
		"exponent":      {func(e *Event) { e.Payload["name"] = json.Number("1e2") }, "payload.name: a number must be"},
		"large":         {func(e *Event) { e.Payload["name"] = uint64(1) << 63 }, "payload.name: a number must be"},
		"large integer": {func(e *Event) { e.Payload["name"] = 1 << 53 }, "payload.name: a number must be"},
	} {
		e := created(t)
		c.change(&e)
		_, err := e.Envelope()
		require.Error(t, err, name)
		f := fault.From(err)
		require.Equal(t, fault.ValidationError, f.Type, name)
		require.Contains(t, f.Message, c.detail, name)
	}
	e := created(t)
	e.Payload["name"] = struct{ Secret string }{"hush"}
	_, err := e.Envelope()
	require.ErrorContains(t, err, "payload.name: a struct { Secret string } cannot be recorded")
	require.Equal(t, fault.InternalError, fault.From(err).Type, "a mistake of the platform")

	export := Event{TenantID: tenantID, Actor: "a", ActorType: ActorUser, Source: SourceGraphQL, Type: ExportInitiated}
	var deep any = "x"
	for range maxDepth + 1 {
		deep = []any{deep}
	}
	export.Payload = map[string]any{"filter": deep}
	_, err = export.Envelope()
	require.ErrorContains(t, err, "nested deeper")
	many := make([]string, MaxPayload/MaxString+1)
	for i := range many {
		many[i] = strings.Repeat("a", MaxString)
	}
	export.Payload = map[string]any{"filter": many}
	_, err = export.Envelope()
	require.Equal(t, 413, fault.From(err).Status())
}

func TestAnEventIsCompleted(t *testing.T) {
	before := ident.Now()
	env, err := Event{TenantID: tenantID, Actor: "pool", ActorType: ActorSystem, Source: SourceSystem, Type: SignedOut}.Envelope()
	require.NoError(t, err)
	require.True(t, uuid7(env.EventID))
	require.False(t, env.OccurredAt.Before(before.Time))
	text, err := env.Append(nil)
	require.NoError(t, err)
	again, err := ParseEnvelope(text)
	require.NoError(t, err)
	require.Equal(t, env, again)
}

// Whoever adds a type adds its rule: each constant of this package is in the one list, and each that is not reserved has a rule.
func TestEveryTypeHasARule(t *testing.T) {
	declared := map[Type]bool{}
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && v.Type != nil && len(v.Values) > 0 {
				if name, ok := v.Type.(*ast.Ident); ok && name.Name == "Type" {
					text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
					require.NoError(t, err)
					declared[Type(text)] = true
				}
			}
			return true
		})
	}
	reserved := map[Type]bool{PolicyEvaluated: true, PolicyAllowed: true, PolicyBlocked: true, PolicyBypassed: true, ApprovalRecorded: true}
	require.Len(t, declared, 19)
	require.Len(t, Types(), 19)
	for typ := range declared {
		require.Contains(t, Types(), typ)
		require.Equal(t, reserved[typ], typ.Reserved(), typ)
		require.NotEqual(t, reserved[typ], typ.Recorded(), "%s needs a rule", typ)
		for field, s := range rules[typ] {
			require.NotZero(t, s, "%s %s needs a shape", typ, field)
			require.False(t, givesAccess(field) && s != scalar, "%s %s", typ, field)
		}
	}
	require.False(t, Type("agent.renamed").Recorded() || Type("agent.renamed").Reserved())
}

// The API's document tells, for each type that is recorded, what of its payload is kept; and names the reserved ones.
func TestTheDocumentTellsWhatIsKept(t *testing.T) {
	document, err := os.ReadFile("../../docs/api.md")
	require.NoError(t, err)
	told := map[Type][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`[a-z_]+\\..*?) \\| (.*) \\|$").FindAllStringSubmatch(string(document), -1) {
		for _, name := range strings.Split(row[1], ", ") {
			told[Type(strings.Trim(name, "`"))] = slices.Sorted(slices.Values(strings.Split(row[2], ", ")))
		}
	}
	for _, typ := range Types() {
		if typ.Recorded() {
			require.Equal(t, typ.Fields(), told[typ], typ)
		}
		require.Contains(t, string(document), "`"+string(typ)+"`")
	}
}
