package openapitest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	v3 "github.com/pb33f/libopenapi/datamodel/high/v3"
)

// added are headers that stand for no operation: HTTP's own, and those of the gateway in front of the functions.
var added = []string{"Content-Type", "Content-Length", "Date", "Connection", "Apigw-Requestid",
	"Access-Control-Allow-Origin", "Access-Control-Allow-Headers", "Access-Control-Allow-Methods", "Access-Control-Expose-Headers"}

// headerBreaches checks an answer's headers: those that must be there are, each has a value as described, and no other is there.
func (c *Contract) headerBreaches(want described, got http.Header) (found []string) {
	for _, name := range slices.Sorted(maps.Keys(want.headers)) {
		h := want.headers[name]
		if len(got[name]) == 0 && h.Required {
			found = append(found, fmt.Sprintf("answer: the header %s is missing", name))
		}
		for _, value := range got[name] {
			_, errs := c.schemas.ValidateSchemaObjectWithVersion(h.Schema.Schema(), spelled(h, value), 3.1)
			found = append(found, lines(fmt.Sprintf("answer, header %s: %s", name, value), errs)...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if want.headers[name] == nil && !slices.Contains(added, name) {
			found = append(found, fmt.Sprintf("answer: the header %s is not described", name))
		}
	}
	return found
}

// spelled is a header's value as the schema's type reads it: a number where it is one, else the text.
func spelled(h *v3.Header, value string) any {
	if slices.Contains(h.Schema.Schema().Type, "integer") && !strings.ContainsAny(value, " \"{[") {
		var number json.Number
		if json.Unmarshal([]byte(value), &number) == nil {
			return number
		}
	}
	return value
}
