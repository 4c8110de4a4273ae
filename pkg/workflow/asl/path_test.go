package asl_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ohler55/ojg/jp"
	"github.com/ohler55/ojg/oj"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/workflow/asl"
)

const store = `{"store": {
	"book": [
		{"category": "reference", "author": "Nigel Rees", "title": "Sayings", "price": 8.95},
		{"category": "fiction", "author": "Evelyn Waugh", "title": "Sword", "price": 12.99},
		{"category": "fiction", "author": "Herman Melville", "title": "Moby", "isbn": "0-553-21311-3", "price": 8.99},
		{"category": "fiction", "author": "J. R. R. Tolkien", "title": "Lord", "isbn": "0-395-19395-8", "price": 22.99}],
	"bicycle": {"color": "red", "price": 19.95}},
	"limit": 10.0, "null": null, "empty": [], "a b": {"c.d": 1, "it's": 2}, "deep": [[1, 2], [3, [4]]], "list": [1, 1.0, "1", true, null]}`

// found is what an InputPath makes of data.
func found(t testing.TB, path string, value any) (any, *asl.Failure) {
	t.Helper()
	quoted, err := json.Marshal(path)
	require.NoError(t, err)
	return pass(t, `"InputPath": `+string(quoted)).Input(value, object())
}

func TestPaths(t *testing.T) {
	for path, want := range map[string]string{
		"$.store.bicycle.color":         `"red"`,
		"$['store']['bicycle'].color":   `"red"`,
		`$["store"].bicycle["color"]`:   `"red"`,
		"$['a b']['c.d']":               `1`,
		`$['a b']['it\'s']`:             `2`,
		"$.null":                        `null`,
		"$.store.book[0].title":         `"Sayings"`,
		"$.store.book[-1].title":        `"Lord"`,
		"$.store.book[ 2 ].title":       `"Moby"`,
		"$.limit":                       `10.0`,
		"$.list":                        `[1,1.0,"1",true,null]`,
		"$.nothing":                     "States.Runtime",
		"$.nothing[*]":                  "States.Runtime",
		"$.store.book[9]":               "States.Runtime",
		"$.store.book[-9]":              "States.Runtime",
		"$.store.book.title":            "States.Runtime",
		"$.null.x":                      "States.Runtime",
		"$.store[0]":                    "States.Runtime",
		"$.limit[0:1]":                  "States.Runtime",
		"$.limit[?(@ > 1)]":             "States.Runtime",
		"$.store.book[*].author":        `["Nigel Rees","Evelyn Waugh","Herman Melville","J. R. R. Tolkien"]`,
		"$.store.book[*].isbn":          `["0-553-21311-3","0-395-19395-8"]`,
		"$.store.book[*].nothing":       `[]`,
		"$.empty[*]":                    `[]`,
		"$.limit.*":                     `[]`,
		"$..color":                      `["red"]`,
		"$..price":                      `[19.95,8.95,12.99,8.99,22.99]`,
		"$.store..price":                `[19.95,8.95,12.99,8.99,22.99]`,
		"$..nothing":                    `[]`,
		"$..book[2].title":              `["Moby"]`,
		"$..book[*].title":              `["Sayings","Sword","Moby","Lord"]`,
		"$.deep..[0]":                   `[[1,2],1,3,4]`,
		"$.deep..*":                     `[[1,2],[3,[4]],1,2,3,[4],4]`,
		"$.store.bicycle.*":             `["red",19.95]`,
		"$.store.book[0,2].title":       `["Sayings","Moby"]`,
		"$.store.book[0, 9, -1].title":  `["Sayings","Lord"]`,
		"$.store.book[0:2].title":       `["Sayings","Sword"]`,
		"$.store.book[:1].title":        `["Sayings"]`,
		"$.store.book[2:].title":        `["Moby","Lord"]`,
		"$.store.book[-1:].title":       `["Lord"]`,
		"$.store.book[:-3].title":       `["Sayings"]`,
		"$.store.book[1:99].title":      `["Sword","Moby","Lord"]`,
		"$.store.book[3:1]":             `[]`,
		"$.store.book[9:]":              `[]`,
		"$.store.book[0][*]":            `["Nigel Rees","reference",8.95,"Sayings"]`,
		"$.store.book[?(@.isbn)].title": `["Moby","Lord"]`,
		"$$.Execution.Id":               `"arn:run"`,
		"$$.Execution.Input.a":          `1`,
		"$$['Task'].Token":              `"token"`,
		"$$.Map":                        "States.Runtime",
		"$$.Execution[*]":               `["arn:run",{"a":1},"run"]`,
	} {
		t.Run(path, func(t *testing.T) { require.Equal(t, want, told(found(t, path, data(t, store)))) })
	}
	value, f := found(t, "$$", nil)
	require.Nil(t, f)
	require.Equal(t, text(object()), text(value))
}

func TestFilters(t *testing.T) {
	for filter, want := range map[string]string{
		"@.price < 10":                  "Sayings Moby",
		"@.price<=8.95":                 "Sayings",
		"@.price > $.limit":             "Sword Lord",
		"@.price>=$['limit'] && @.isbn": "Lord",
		"@.price == 8.950":              "Sayings",
		"@.price == '8.95'":             "",
		"@.price != 8.95":               "Sword Moby Lord",
		"@.isbn != 'x'":                 "Sayings Sword Moby Lord",
		"@.isbn == null":                "",
		"!@.isbn":                       "Sayings Sword",
		"!(@.isbn || @.price < 9)":      "Sword",
		"@.category == 'fiction' && (@.price<9||@.price>20)": "Moby Lord",
		"@.price < 9 || @.price > 20 && @.isbn":              "Sayings Moby Lord",
		"8.95 == @.price":                                    "Sayings",
		`@['category'] == "reference"`:                       "Sayings",
		"@.title =~ /.*o.*/":                                 "Sword Moby Lord",
		"@.title =~ /^l.*/i":                                 "Lord",
		"@.title =~ /o/":                                     "",
		"@.price =~ /.*/":                                    "",
		"@.title =~ 'S.*'":                                   "Sayings Sword",
		"@.title in ['Moby', 'Lord', 1]":                     "Moby Lord",
		"@.title nin ['Moby','Lord']":                        "Sayings Sword",
		"@.title in 'Moby'":                                  "",
		"@.title > 'N'":                                      "Sayings Sword",
		"@.title > 1":                                        "",
		"@.price":                                            "Sayings Sword Moby Lord",
		"@..isbn":                                            "Moby Lord",
		"@.* == 'x'":                                         "",
		"true == true":                                       "Sayings Sword Moby Lord",
		"@.price < $.store.book[1].price":                    "Sayings Moby",
		"@.price < $.nothing":                                "",
	} {
		t.Run(filter, func(t *testing.T) {
			value, f := found(t, "$.store.book[?("+filter+")].title", data(t, store))
			require.Nil(t, f)
			titles := []string{}
			for _, title := range value.([]any) {
				titles = append(titles, title.(string))
			}
			require.Equal(t, want, strings.Join(titles, " "))
		})
	}
	for path, want := range map[string]string{
		"$.list[?(@ == 1)]":                      `[1,1.0]`,
		"$.list[?(@ == true)]":                   `[true]`,
		"$.list[?(@ == null)]":                   `[null]`,
		"$.list[?(@ in [1, null])]":              `[1,1.0,null]`,
		"$.deep[?(@[1] == 2)]":                   `[[1,2]]`,
		"$.store[?(@.color == 'red')]":           `[]`,
		"$.store.bicycle[?(@.color == 'red')]":   `[{"color":"red","price":19.95}]`,
		"$..[?(@.price > 20)].title":             `["Lord"]`,
		"$..[?(@.color)].price":                  `[19.95]`,
		"$.store.book[?(@.isbn)][?(@.price)]":    `[{"author":"Herman Melville","category":"fiction","isbn":"0-553-21311-3","price":8.99,"title":"Moby"},{"author":"J. R. R. Tolkien","category":"fiction","isbn":"0-395-19395-8","price":22.99,"title":"Lord"}]`,
		"$.deep[?(@[?(@ == 3)])]":                `[[3,[4]]]`,
		"$['a b'][?( @['c.d'] == 1 )]['it\\'s']": `[2]`,
	} {
		t.Run(path, func(t *testing.T) { require.Equal(t, want, told(found(t, path, data(t, store)))) })
	}
}

func TestNumbersInFiltersAreExact(t *testing.T) {
	value := data(t, `[{"id": 9007199254740993}, {"id": 9007199254740992}, {"id": 9007199254740992.0}]`)
	require.Equal(t, `[{"id":9007199254740993}]`, told(found(t, "$[?(@.id == 9007199254740993)]", value)))
	require.Equal(t, `[{"id":9007199254740992},{"id":9007199254740992.0}]`, told(found(t, "$[?(@.id < 9007199254740993)]", value)))
}

func TestWhatIsNoPathIsRefused(t *testing.T) {
	for path, why := range map[string]string{
		"":                              "a path",
		"a":                             "a path",
		" $":                            "a path",
		"$ ":                            "a path's end",
		"$x":                            "variables are not supported",
		"$.":                            "a name or *",
		"$..":                           "a name or *",
		"$...a":                         "a name or *",
		"$.a b":                         "a path's end",
		"$.a.length()":                  "no functions",
		"$[":                            "an index, a name",
		"$[]":                           "an index, a name",
		"$[a]":                          "an index, a name",
		"$[1":                           "]",
		"$['a'":                         "]",
		"$['a":                          "the end of a text in quotes",
		"$['a','b']":                    "lists of names",
		"$[0,'b']":                      "an index",
		"$[0,]":                         "an index",
		"$[:]":                          "an index",
		"$[0:9:2]":                      "]",
		"$[99999999999]":                "no index",
		"$[-]":                          "no index",
		"$[?@.a]":                       "(",
		"$[?()]":                        "a path or a value",
		"$[?(1)]":                       "one of ==",
		"$[?(@.a ==)]":                  "a path or a value",
		"$[?(@.a = 1)]":                 ")",
		"$[?(@.a == 1]":                 ")",
		"$[?(@.a == nothing)]":          "a path or a value",
		"$[?(@.a == 1x)]":               "a path or a value",
		"$[?(@.a == $$.b)]":             "does not see $$",
		"$[?(@.a =~ /(/)]":              "missing closing )",
		"$[?(@.a =~ /a{9}/)]":           "has no {}",
		"$[?(@.a =~ /a)]":               "the end of a regular expression",
		"$[?(@.a =~ a)]":                "a regular expression",
		"$[?(@.a in [1, @])]":           "a path or a value",
		"$[?(@.a in [1 2])]":            ", or ]",
		"$[(@.length-1)]":               "an index, a name",
		"$" + strings.Repeat(".a", 100): "more than 64 steps",
		"$[?(" + strings.Repeat("!", 20) + "@.a)]":              "nested deeper than 10",
		"$[?(" + strings.Repeat("(", 20) + "@.a":                "nested deeper than 10",
		strings.Repeat("$[?(@", 1) + strings.Repeat("[?(@", 20): "nested deeper than 10",
		"$[?(@.a" + strings.Repeat("&&@.a", 100) + ")]":         "more than 64 conditions",
	} {
		quoted, err := json.Marshal(path)
		require.NoError(t, err)
		got := problems(t, around(`"Type": "Pass", "Next": "Z", "InputPath": `+string(quoted)), asl.Dialect{})
		require.Len(t, got, 1, path)
		require.True(t, strings.HasPrefix(got[0], "/States/S/InputPath: "), got[0])
		require.Contains(t, got[0], why, path)
	}
}

// Another implementation of JSONPath finds the same, where the two mean the same.
func TestPathsAgainstAnotherImplementation(t *testing.T) {
	ours := data(t, store)
	theirs, err := oj.ParseString(store)
	require.NoError(t, err)
	parts := []string{".store", ".book", "[*]", ".*", "..price", "..*", "[0]", "[-1]", "[1:3]", "[:2]", "[-2:]", "[0,1]", ".title", ".deep", "[?(@.price < 10)]", "[?(@.isbn)]"}
	n := 0
	for _, a := range parts {
		for _, b := range parts {
			for _, c := range parts {
				path := "$" + a + b + c
				if i := max(strings.LastIndex(path, ".."), strings.LastIndex(path, "[?")); i > 0 && !isDefinite(path[:i]) {
					continue // where they differ: the other one loses arrays behind .., and filters what is in an object, not the object
				}
				value, f := found(t, path, ours)
				expression, err := jp.ParseString(path)
				require.NoError(t, err, path)
				want := multiset(expression.Get(theirs))
				switch {
				case f != nil:
					require.Empty(t, want, path)
				case isDefinite(a + b + c):
					require.Equal(t, want, multiset([]any{value}), path)
				default:
					require.Equal(t, want, multiset(value.([]any)), path)
				}
				n++
			}
		}
	}
	require.Greater(t, n, 2000)
}

func isDefinite(path string) bool {
	for _, part := range []string{"*", "..", ":", ",", "?"} {
		if strings.Contains(path, part) {
			return false
		}
	}
	return true
}

// multiset counts what there is: the order of an object's members is nobody's.
func multiset(values []any) map[string]int {
	counts := map[string]int{}
	for _, v := range values {
		counts[plain(v)]++
	}
	return counts
}

func plain(value any) string {
	b, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(err)
	}
	var v any
	_ = json.Unmarshal(b, &v) // numbers as they are, not as they were written
	b, _ = json.Marshal(v)
	return string(b)
}
