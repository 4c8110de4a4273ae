package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/manifest"
)

// canned is a function whose answers are data, so that the oracle can have the same.
type canned struct {
	Key   string                     `json:"key"`   // "source.id", "args.id" or ""
	Cases map[string]json.RawMessage `json:"cases"` // answers by the key's value
	Else  json.RawMessage            `json:"else"`
	Echo  bool                       `json:"echo"` // answers its arguments as a string
}

func (c canned) Invoke(_ context.Context, payload []byte) ([]byte, error) {
	var events []handler.Event
	if payload[0] != '[' {
		events = make([]handler.Event, 1)
		if err := json.Unmarshal(payload, &events[0]); err != nil {
			return nil, err
		}
		return c.answer(events[0]), nil
	}
	if err := json.Unmarshal(payload, &events); err != nil {
		return nil, err
	}
	var answers [][]byte
	for _, e := range events {
		answers = append(answers, c.answer(e))
	}
	return append(append([]byte("["), bytes.Join(answers, []byte(","))...), ']'), nil
}

func (c canned) answer(e handler.Event) []byte {
	if c.Echo {
		text, _ := json.Marshal(string(e.Arguments))
		return fmt.Appendf(nil, `{"data":%s}`, text)
	}
	from, member, _ := strings.Cut(c.Key, ".")
	raw := map[string]json.RawMessage{"source": e.Source, "args": e.Arguments}[from]
	var object map[string]json.RawMessage
	_ = json.Unmarshal(raw, &object)
	if a, ok := c.Cases[strings.Trim(string(object[member]), `"`)]; ok {
		return a
	}
	return c.Else
}

// world is a schema with functions for some of its fields.
type world struct {
	SDL       string            `json:"sdl"`
	Functions map[string]canned `json:"functions"`
	batch     map[string]bool
	prelude   string
	schema    *schema
}

// gateway runs the world; a field that only the platform may ask for has no function here, and one that refuses in the oracle.
func (w world) gateway(config Config) (*Gateway, error) {
	config.SDL, config.Prelude, config.Functions = w.SDL, w.prelude, map[string]lambda.Handler{}
	for field, c := range w.Functions {
		if typ, name, _ := strings.Cut(field, "."); w.schema.access(w.schema.Types[typ], w.schema.Types[typ].Fields.ForName(name)).platform {
			continue
		}
		config.Functions[field] = c
		config.Manifest.Rows = append(config.Manifest.Rows, manifest.Row{Name: field, On: []string{"graphql " + field}, Batch: w.batch[field]})
	}
	for _, f := range w.schema.Subscription.Fields { // the oracle starts from the event, so it needs no function here
		name := "Subscription." + f.Name
		config.Functions[name] = canned{Else: json.RawMessage(`{"data":{"tenantId":"t"}}`)}
		config.Manifest.Rows = append(config.Manifest.Rows, manifest.Row{Name: name, On: []string{"graphql " + name}})
	}
	return New(config)
}

// data makes random values for output types.
type data struct {
	*rand.Rand
	schema *schema
	wrong  int // percent of values that do not fit
	nulls  int // percent
	errors int // percent of answers
	props  func(def *ast.Definition, field string) bool
}

func (d *data) maybe(percent int) bool { return d.IntN(100) < percent }

func (d *data) of(options ...string) string { return options[d.IntN(len(options))] }

func (d *data) answer(typ *ast.Type) json.RawMessage {
	if d.maybe(d.errors) {
		return json.RawMessage(d.of(
			`{"errorType":"NotFound","message":"thread not found"}`,
			`{"errorType":"Forbidden","message":"this needs the role \"admin\" or owner\n"}`,
			`{"errorType":"InternalError","message":"internal error (request r)","data":1}`,
		))
	}
	return json.RawMessage(`{"data": ` + d.value(typ, 3) + ` }`)
}

func (d *data) value(typ *ast.Type, depth int) string {
	if d.maybe(d.nulls) {
		if !typ.NonNull || d.maybe(10) {
			return "null"
		}
	}
	if typ.Elem != nil {
		if d.maybe(d.wrong) {
			return d.of(`"text"`, `{"id":"a"}`, `7`)
		}
		var items []string
		for range d.IntN(4) {
			items = append(items, d.value(typ.Elem, depth-1))
		}
		return "[" + strings.Join(items, " , ") + "]"
	}
	def := d.schema.Types[typ.NamedType]
	if def.IsLeafType() {
		return d.leafValue(def)
	}
	if depth <= 0 {
		return "null"
	}
	name := def.Name
	if def.IsAbstractType() {
		var possible []string
		for _, p := range d.schema.PossibleTypes[def.Name] {
			if p.Kind == ast.Object {
				possible = append(possible, p.Name)
			}
		}
		def = d.schema.Types[d.of(possible...)]
		if name = def.Name; d.maybe(d.wrong) {
			name = d.of("Nobody", "Strict", "Query", "Named", "Thread")
		}
	}
	var members []string
	if typ.NamedType != def.Name && !d.maybe(d.wrong) {
		members = append(members, `"__typename":"`+name+`"`)
	}
	for _, f := range def.Fields {
		if !strings.HasPrefix(f.Name, "__") && d.props(def, f.Name) && !d.maybe(2) {
			members = append(members, `"`+f.Name+`":`+d.value(f.Type, depth-1))
		}
	}
	d.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return "{" + strings.Join(members, ",") + "}"
}

func (d *data) leafValue(def *ast.Definition) string {
	if d.maybe(d.wrong) {
		return d.of(`1`, `1.5`, `"x"`, `true`, `false`, `""`, `"12"`, `3000000000`, `1e3`, `-0`, `[1,2]`, `{"a":{"b":{"c":{}}},"e":[]}`,
			`[1,2,3,4,5,6,7,8,9,10,11,12]`, `"\ud83d\ude00 \u003c\u0000\t\/"`, `1e21`, `12345.678e-9`)
	}
	if def.Kind == ast.Enum {
		return `"` + def.EnumValues[d.IntN(len(def.EnumValues))].Name + `"`
	}
	switch def.Name {
	case "Int":
		return d.of("0", "1", "-7", "2147483647", "2.0")
	case "Float":
		return d.of("0", "0.1", "-1e-7", "1E3", "5")
	case "Boolean":
		return d.of("true", "false")
	case "ID":
		return d.of(`"a"`, `"b"`, `"c"`, `1`)
	case "AWSDate":
		return `"2024-02-29"`
	case "AWSDateTime":
		return `"2024-02-29T23:59:59.123456Z"`
	case "AWSURL":
		return `"https://acme.test/mcp?a=b"`
	case "AWSJSON":
		return d.of(`"{\"a\": 1}"`, `{"a": [1, null]}`, `[]`, `"[1]"`)
	case "Anything":
		return d.of(`{"a" : [1, 2.50], "b": "\u00e9"}`, `"s"`, `1`, `false`, `[[]]`)
	default:
		return d.of(`""`, `"text"`, `"Größe 😀"`, `"a\nb \u003cc\u003e \"d\" \\ \/"`, `"\u2028\u007f"`)
	}
}

// newWorld gives each field named a canned function, with data from the seed.
func newWorld(s *schema, sdl, prelude string, seed uint64, fields []string, batch ...string) world {
	d := &data{Rand: rand.New(rand.NewPCG(seed, 1)), schema: s}
	d.wrong, d.nulls, d.errors = int(seed%3)*2, int(seed%4)*5, int(seed%4)*6
	d.props = func(def *ast.Definition, field string) bool { return !slices.Contains(fields, def.Name+"."+field) }
	w := world{SDL: sdl, prelude: prelude, schema: s, Functions: map[string]canned{}, batch: map[string]bool{}}
	for _, b := range batch {
		w.batch[b] = true
	}
	for _, field := range fields {
		typ, name, _ := strings.Cut(field, ".")
		def := s.Types[typ].Fields.ForName(name)
		c := canned{Else: d.answer(def.Type), Echo: name == "echo" || name == "must"}
		switch {
		case s.access(s.Types[typ], def).platform:
			c.Else = json.RawMessage(`{"errorType":"Unauthorized","message":"Not Authorized to access ` + name + ` on type ` + typ + `"}`)
		case def.Arguments.ForName("id") != nil:
			c.Key = "args.id"
		case s.Types[typ].Fields.ForName("id") != nil:
			c.Key = "source.id"
		}
		if c.Key != "" {
			c.Cases = map[string]json.RawMessage{"a": d.answer(def.Type), "1": d.answer(def.Type)}
		}
		w.Functions[field] = c
	}
	return w
}

func propsOf(w world) func(def *ast.Definition, field string) bool {
	return func(def *ast.Definition, field string) bool { _, ok := w.Functions[def.Name+"."+field]; return !ok }
}

func (g *generator) fresh(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 3)) }
