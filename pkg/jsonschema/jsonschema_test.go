package jsonschema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentplatform/agentplatform/pkg/jsonschema"
)

func compile(t testing.TB, text string) *jsonschema.Schema {
	t.Helper()
	s, err := jsonschema.Compile(text)
	require.NoError(t, err, text)
	return s
}

func TestWhatASchemaAsksFor(t *testing.T) {
	for _, c := range []struct{ schema, text, says string }{
		{`{}`, `1`, ``},
		{`true`, `null`, ``},
		{`false`, `null`, `at '': false schema`},
		{`{"type": "object", "required": ["a"]}`, `{"a": 1}`, ``},
		{`{"type": "object", "required": ["a"]}`, `{}`, `at '': missing property 'a'`},
		{`{"properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}`, `{"a": "1", "b": 2}`, `at '/a': got string, want integer`},
		{`{"additionalProperties": false}`, `{"c": 1, "a": 1, "b": 1}`, `at '': additional properties 'a', 'b', 'c' not allowed`},
		{`{"pattern": "^a+$"}`, `"aab"`, `at '': 'aab' does not match pattern '^a+$'`},
		{`{"$ref": "#/$defs/x", "$defs": {"x": {"minimum": 3}}}`, `2`, `at '': minimum: got 2, want 3`},
		{`{"multipleOf": 0.01}`, `19.99`, ``}, // exact, not a float
		{`{"type": "integer"}`, `1.0`, ``},
		{`{"type": "integer"}`, `9007199254740993`, ``},
		{`{"const": 9007199254740993}`, `9007199254740992`, `at '': value must be 9007199254740993`},
		{`{"uniqueItems": true}`, `[1, 2, 1.0]`, `at '': items at 0 and 2 are equal`},
		{`{"required": ["a", "b"]}`, `{}`, `at '': missing properties 'a', 'b'`},
		{`{"enum": ["a", 1.0, null]}`, `1`, ``},
		{`{"enum": ["a", 1.0, null]}`, `"b"`, `at '': value must be one of 'a', 1.0, null`},
		{`{"properties": {"a": {"items": {"type": ["string", "null"]}}}}`, `{"a": [null, true]}`, `at '/a/1': got boolean, want string or null`},
		{`{"anyOf": [{"type": "string"}, {"type": "null"}]}`, `1`, `at '': got number, want string`},
		{`{"oneOf": [{"type": "string"}, {"minLength": 1}]}`, `"a"`, `at '': 'oneOf' failed, subschemas 0, 1 matched`},
		{`{"format": "email"}`, `"no address"`, ``},
		{`{"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]}`, `[1]`, `at '/0': got number, want string`},
		{`{"$schema": "http://json-schema.org/draft-07/schema#", "type": "string"}`, `"x"`, ``},
	} {
		err := compile(t, c.schema).Validate(c.text)
		if c.says == "" {
			require.NoError(t, err, "%s on %s", c.schema, c.text)
		} else {
			require.EqualError(t, err, c.says, "%s on %s", c.schema, c.text)
		}
	}
}

func TestWhatIsNoSchema(t *testing.T) {
	for text, says := range map[string]string{
		``:                                       "not JSON: it ends too soon",
		`{"type": "object"`:                      "not JSON: it ends too soon",
		`{} {}`:                                  "not JSON: there is more behind the value",
		`[]`:                                     "neither an object nor a boolean",
		`{"type": "objekt"}`:                     "value must be one of",
		`{"$ref": "https://example.com/s.json"}`: "references out of the schema are not followed",
		`{"$ref": "file:///etc/passwd"}`:         "references out of the schema are not followed",
		`{"$ref": "other.json"}`:                 "references out of the schema are not followed",
		`{"$schema": "https://example.com/dialect"}`:              "references out of the schema are not followed",
		`{"$ref": "#/$defs/none"}`:                                "not found",
		`{"$dynamicAnchor": "x", "items": {"$dynamicRef": "#x"}}`: "$dynamicRef and $recursiveRef are not supported",
		`{"$ref": "#"}`: "a reference leads back to itself",
		`{"anyOf": [{"type": "string"}, {"$ref":"#"}]}`: "a reference leads back to itself",
		`{"pattern": "("}`: "at '/pattern': error parsing regexp",
		`{"pattern": "` + strings.Repeat("a{0,1000}", 20) + `"}`:               "at '/pattern': the patterns are too large",
		`{"$schema": "http://json-schema.org/draft-04/schema#"}`:               "at '/$schema'",
		`{"items": {"minLength": -1}}`:                                         "at '/items/minLength': must be a whole number, not negative",
		`{"$defs": {"a/b": {"required": "a"}}}`:                                "at '/$defs/a~1b/required': must be a list of strings",
		`{"properties": {"a": 1}}`:                                             "at '/properties/a': a schema is an object or a boolean",
		`{"anyOf": []}`:                                                        "at '/anyOf': must be a list of schemas",
		`{"maximum": 1e999999999}`:                                             "a number is too long or too large",
		`{"maximum": ` + strings.Repeat("9", 101) + `}`:                        "a number is too long or too large",
		strings.Repeat(`{"not":`, 65) + `{}` + strings.Repeat(`}`, 65):         "nested more than 64 levels deep",
		`{"description": "` + strings.Repeat("x", jsonschema.MaxSchema) + `"}`: "longer than 16384 bytes",
	} {
		_, err := jsonschema.Compile(text)
		require.Error(t, err, text)
		require.Contains(t, err.Error(), says, text)
	}
}

// Each doubles the work with every line: 2 to the 60th steps, if anybody took them.
func TestNoSchemaTakesForEver(t *testing.T) {
	inPlace, deep := map[string]any{}, map[string]any{"a": object{"items": object{"anyOf": []any{object{"$ref": "#/$defs/a"}, object{"$ref": "#/$defs/a"}}}}}
	for i := range 60 {
		next := object{"$ref": fmt.Sprintf("#/$defs/d%d", i+1)}
		inPlace[fmt.Sprintf("d%d", i)] = object{"anyOf": []any{next, next}}
	}
	inPlace["d60"] = false
	for name, defs := range map[string]any{"d0": inPlace, "a": deep} {
		text, err := json.Marshal(object{"$defs": defs, "$ref": "#/$defs/" + name})
		require.NoError(t, err)
		err = compile(t, string(text)).Validate(strings.Repeat("[", 60) + strings.Repeat("]", 60))
		require.EqualError(t, err, "checking it takes more than 100000 steps")
	}
	require.EqualError(t, compile(t, `{"pattern": "(a?){900}$"}`).Validate(`"`+strings.Repeat("a", 100_000)+`"`), "checking it takes more than 100000 steps")
	require.EqualError(t, compile(t, `{"items": {}}`).Validate("["+strings.Repeat("1,", 200_000)+"1]"), "checking it takes more than 100000 steps")
	require.EqualError(t, compile(t, `{}`).Validate(strings.Repeat("[", 100_000)), "nested more than 64 levels deep")
	require.EqualError(t, compile(t, `{}`).Validate(`1e999999999`), "a number is too long or too large")
	require.EqualError(t, compile(t, `{}`).Validate(strings.Repeat(" ", jsonschema.MaxText)+"1"), "longer than 1048576 bytes")
}

type object = map[string]any

// A tree is a real schema's shape, and a large answer one that it must be able to check.
func TestAnOrdinarySchemaOnALargeText(t *testing.T) {
	s := compile(t, `{"$defs": {"node": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"},
		"children": {"type": "array", "items": {"$ref": "#/$defs/node"}}}, "additionalProperties": false}}, "$ref": "#/$defs/node"}`)
	leaf := `{"name": "leaf"}`
	branch := `{"name": "branch", "children": [` + strings.Repeat(leaf+",", 99) + leaf + `]}`
	require.NoError(t, s.Validate(`{"name": "root", "children": [`+strings.Repeat(branch+",", 29)+branch+`]}`))
}

func TestAnythingIsAnsweredAndAlikeEachTime(t *testing.T) {
	word := rapid.SampledFrom([]string{"type", "items", "properties", "anyOf", "allOf", "not", "$ref", "$defs", "a", "b", "#", "#/$defs/a", "string", "enum", "minimum", "uniqueItems",
		"required", "pattern", "if", "then", "else", "contains", "additionalProperties", "unevaluatedProperties", "dependentSchemas", "object", "prefixItems"})
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		plain := rapid.OneOf(rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.Int().AsAny(), word.AsAny(), rapid.String().AsAny())
		if depth == 0 {
			return plain
		}
		return rapid.OneOf(plain, rapid.MapOfN(word, value(depth-1), 0, 4).AsAny(), rapid.SliceOfN(value(depth-1), 0, 3).AsAny())
	}
	rapid.Check(t, func(t *rapid.T) {
		schema, err := json.Marshal(value(3).Draw(t, "schema"))
		require.NoError(t, err)
		text, err := json.Marshal(value(3).Draw(t, "text"))
		require.NoError(t, err)
		s, err := jsonschema.Compile(string(schema))
		if err != nil {
			return
		}
		first := s.Validate(string(text))
		for range 5 {
			require.Equal(t, first, s.Validate(string(text)))
		}
	})
}
