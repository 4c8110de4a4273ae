package gateway

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// generator writes random requests for a schema: the same for the same seed. Most are valid.
type generator struct {
	*rand.Rand
	schema    *schema
	fragments []fragment
	declared  []string // "$v0: Int = 1"
	variables []string // `"v0":1`
	open      int      // fragments that are being written
	bare      bool     // the next field gets no directives: graphql-js cannot validate them at the root of a subscription
}

type fragment struct{ name, on, text string }

type generated struct {
	World         int             `json:"world"`
	Query         string          `json:"query"`
	OperationName string          `json:"operationName,omitempty"`
	Variables     json.RawMessage `json:"variables,omitempty"`
	Event         json.RawMessage `json:"event,omitempty"`
	subscription  bool
}

func generate(s *schema, seed uint64) generated {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 7)), schema: s}
	kind, root := ast.Query, s.Query
	switch n := g.IntN(10); {
	case n == 0 || n == 1:
		kind, root = ast.Mutation, s.Mutation
	case n == 2:
		kind, root = ast.Subscription, s.Subscription
	}
	var body string
	if kind == ast.Subscription {
		f := root.Fields[g.IntN(len(root.Fields))]
		g.bare = true
		body = "{ " + g.field(root, f, 5) + " }"
	} else {
		body = g.selection(root, 5)
	}
	r := generated{subscription: kind == ast.Subscription}
	query := string(kind) + " "
	if g.maybe(30) {
		query += "Main"
		if g.maybe(50) {
			r.OperationName = "Main"
		}
	}
	if len(g.declared) > 0 {
		query += "(" + strings.Join(g.declared, ", ") + ")"
	}
	query += body
	for _, f := range g.fragments {
		query += "\n" + f.text
	}
	if r.OperationName != "" && g.maybe(30) {
		query = "# more than one é 😀\r\n" + query + "\nquery Other { __typename }"
	}
	if r.Query = query; len(g.variables) > 0 {
		r.Variables = json.RawMessage("{" + strings.Join(g.variables, ",") + "}")
	}
	return r
}

func (g *generator) maybe(percent int) bool { return g.IntN(100) < percent }

func pick[T any](g *generator, of ...T) T { return of[g.IntN(len(of))] }

func (g *generator) selection(def *ast.Definition, depth int) string {
	var parts []string
	for range 1 + g.IntN(4) {
		parts = append(parts, g.part(def, depth))
	}
	return pick(g, " { ", "{\n  ", " {\r\n") + strings.Join(parts, pick(g, " ", "\n", ", ", "\r\n\t")) + pick(g, " }", "\n}")
}

func (g *generator) part(def *ast.Definition, depth int) string {
	switch n := g.IntN(100); {
	case n < 8:
		return "__typename" + g.directives()
	case def.Kind == ast.Union || n < 25:
		on := g.condition(def)
		if on == "" {
			return "..." + g.directives() + g.selection(def, depth)
		}
		return "... on " + on + g.directives() + g.selection(g.schema.Types[on], depth)
	case n < 40 && g.open < 3:
		return g.spread(def, depth)
	}
	f := def.Fields[g.IntN(len(def.Fields))]
	if strings.HasPrefix(f.Name, "__") { // most random introspection is too deep for both
		f, depth = def.Fields[g.IntN(len(def.Fields))], min(depth, 3)
	}
	return g.field(def, f, depth)
}

// condition is a type that can occur where def is; "" for none.
func (g *generator) condition(def *ast.Definition) string {
	names := []string{def.Name}
	if def.Kind != ast.Union {
		names = append(names, "")
	}
	for _, possible := range g.schema.PossibleTypes[def.Name] {
		names = append(names, possible.Name)
		names = append(names, possible.Interfaces...)
	}
	return pick(g, names...)
}

func (g *generator) spread(def *ast.Definition, depth int) string {
	on := g.condition(def)
	if on == "" {
		on = def.Name
	}
	for _, f := range g.fragments {
		if f.on == on && f.text != "" && g.maybe(60) {
			return "..." + f.name + g.directives()
		}
	}
	name := fmt.Sprintf("F%d", len(g.fragments))
	g.fragments = append(g.fragments, fragment{name: name, on: on})
	i := len(g.fragments) - 1
	g.open++
	body := g.selection(g.schema.Types[on], depth)
	g.open--
	g.fragments[i].text = "fragment " + name + " on " + on + body
	return "..." + name + g.directives()
}

func (g *generator) field(parent *ast.Definition, f *ast.FieldDefinition, depth int) string {
	typ := g.schema.Types[f.Type.Name()]
	if !typ.IsLeafType() && depth <= 0 {
		return "__typename"
	}
	var args []string
	for _, a := range f.Arguments {
		if (a.Type.NonNull && a.DefaultValue == nil) || g.maybe(60) {
			value := g.constant(a.Type)
			if !g.schema.access(parent, f).platform { // else who may ask comes before what is asked, unlike in the oracle
				value = g.argument(a.Type, a.DefaultValue != nil)
			}
			args = append(args, a.Name+": "+value)
		}
	}
	out := f.Name
	if len(args) > 0 {
		list := "(" + strings.Join(args, ", ") + ")"
		h := fnv.New32()
		h.Write([]byte(list))
		out = fmt.Sprintf("%s_%d: %s%s", f.Name, h.Sum32()%10000, f.Name, list)
	} else if g.maybe(10) {
		out = "a" + f.Name + ": " + f.Name
	}
	out += g.directives()
	if typ.IsLeafType() {
		return out
	}
	return out + g.selection(typ, depth-1)
}

func (g *generator) directives() string {
	if bare := g.bare; bare || !g.maybe(12) {
		g.bare = false
		return ""
	}
	value := pick(g, "true", "false")
	if g.maybe(50) {
		value = g.variable(&ast.Type{NamedType: "Boolean", NonNull: true}, false)
	}
	return " @" + pick(g, "skip", "include") + "(if: " + value + ")"
}

func (g *generator) argument(typ *ast.Type, hasDefault bool) string {
	if g.maybe(45) {
		return g.variable(typ, hasDefault)
	}
	return g.literal(typ, 2)
}

func (g *generator) variable(typ *ast.Type, hasDefault bool) string {
	name := fmt.Sprintf("v%d", len(g.declared))
	declared := *typ
	withDefault := g.maybe(20)
	if typ.NonNull && (withDefault || hasDefault) && typ.NamedType != "Boolean" {
		declared.NonNull = false // null is then an error at the field
	} else if g.maybe(20) {
		declared.NonNull = true
	}
	text := "$" + name + ": " + declared.String()
	if withDefault {
		strict := declared
		strict.NonNull = strict.NonNull || typ.NonNull
		text += " = " + g.constant(&strict)
	}
	g.declared = append(g.declared, text)
	if (withDefault && g.maybe(50)) || (!declared.NonNull && g.maybe(15)) || g.maybe(1) {
		return "$" + name
	}
	g.variables = append(g.variables, `"`+name+`":`+g.input(&declared, 3))
	return "$" + name
}

// constant is a literal without variables in it.
func (g *generator) constant(typ *ast.Type) string {
	return (&generator{Rand: g.Rand, schema: g.schema}).literal(typ, 0)
}

func (g *generator) literal(typ *ast.Type, depth int) string {
	if !typ.NonNull && g.maybe(8) {
		return "null"
	}
	if depth > 0 && g.maybe(10) {
		return g.variable(typ, false)
	}
	if typ.Elem != nil {
		if g.maybe(15) && typ.Elem.Elem == nil {
			return g.literal(&ast.Type{NamedType: typ.Elem.NamedType, NonNull: true}, 0)
		}
		var items []string
		for range g.IntN(3) {
			items = append(items, g.literal(typ.Elem, depth-1))
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	def := g.schema.Types[typ.NamedType]
	if def.Kind == ast.InputObject {
		var fields []string
		for _, f := range g.members(def, depth) {
			fields = append(fields, f.Name+": "+g.literal(f.Type, depth-1))
		}
		return "{" + strings.Join(fields, ", ") + "}"
	}
	if def.Kind == ast.Enum {
		return def.EnumValues[g.IntN(len(def.EnumValues))].Name
	}
	switch def.Name {
	case "Int":
		return pick(g, "0", "-1", "42", "2147483647", "-0")
	case "Float":
		return pick(g, "0", "1.50", "-1e-7", "1e21", "3", "0.1", "12345678901234568")
	case "Boolean":
		return pick(g, "true", "false")
	case "ID":
		return pick(g, `"a"`, `"b"`, "1", `"7"`)
	case "AWSJSON":
		return pick(g, `"{\"a\": [1]}"`, `"null"`, `"\"x\""`)
	case "AWSDate":
		return `"2024-02-29"`
	case "AWSDateTime":
		return `"2024-02-29T23:59:59.123456Z"`
	case "AWSURL":
		return `"https://acme.test/mcp?a=b"`
	case "AWSEmail":
		return `"max@acme.test"`
	case "Anything":
		return pick(g, `{a: [1, 2.50, ENUM], b: {c: null}}`, `"text"`, "[true]", "1e3")
	default:
		return pick(g, `""`, `"text"`, `"é😀\n\"\\\u00e9"`, `"""  block "quoted" """`)
	}
}

// members are the fields that an input object gets.
func (g *generator) members(def *ast.Definition, depth int) (out []*ast.FieldDefinition) {
	if def.Directives.ForName("oneOf") != nil {
		return append(out, &ast.FieldDefinition{Name: def.Fields[0].Name, Type: &ast.Type{NamedType: def.Fields[0].Type.NamedType, NonNull: true}})
	}
	for _, f := range def.Fields {
		isObject := g.schema.Types[f.Type.Name()].Kind == ast.InputObject
		if (f.Type.NonNull && f.DefaultValue == nil) || (g.maybe(60) && (!isObject || depth > -2)) {
			out = append(out, f)
		}
	}
	return out
}

// input is a variable's value as JSON; now and then a wrong one.
func (g *generator) input(typ *ast.Type, depth int) string {
	if g.maybe(3) {
		return pick(g, `null`, `"x"`, `1.5`, `true`, `{"a":{"b":{"c":[]}}}`, `[1,[2,[3]]]`, `99999999999`, `""`, `-1`)
	}
	if !typ.NonNull && g.maybe(8) {
		return "null"
	}
	if typ.Elem != nil {
		if g.maybe(15) {
			return g.input(typ.Elem, depth)
		}
		var items []string
		for range g.IntN(4) {
			items = append(items, g.input(typ.Elem, depth-1))
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	def := g.schema.Types[typ.NamedType]
	if def.Kind == ast.InputObject {
		var fields []string
		for _, f := range g.members(def, depth) {
			fields = append(fields, `"`+f.Name+`":`+g.input(f.Type, depth-1))
		}
		if g.maybe(3) {
			fields = append(fields, `"strange":1`)
		}
		return "{" + strings.Join(fields, ",") + "}"
	}
	if def.Kind == ast.Enum {
		return `"` + def.EnumValues[g.IntN(len(def.EnumValues))].Name + `"`
	}
	switch def.Name {
	case "Int":
		return pick(g, "0", "-1", "1.0", "42", "2147483647", "1e3", "-0")
	case "Float":
		return pick(g, "0", "1.50", "-1e-7", "1e21", "3")
	case "Boolean":
		return pick(g, "true", "false")
	case "ID":
		return pick(g, `"a"`, `"b"`, "1", `"7"`)
	case "AWSJSON":
		return pick(g, `"{\"a\": [1]}"`, `"null"`, `"\u0022x\u0022"`)
	case "AWSDate":
		return `"2024-02-29"`
	case "AWSDateTime":
		return `"2024-02-29T23:59:59.123456Z"`
	case "AWSURL":
		return `"https://acme.test/mcp?a=b"`
	case "AWSEmail":
		return `"max@acme.test"`
	case "Anything":
		return pick(g, `{"a": [1, 2.50],"b":{"c":null}}`, `"text"`, "[true]", "1e3")
	default:
		return pick(g, `""`, `"text"`, `"é\ud83d\ude00\n\"\\\u00e9\u003c"`)
	}
}
