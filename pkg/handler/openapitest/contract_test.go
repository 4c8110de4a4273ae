package openapitest

import (
	"strings"
	"testing"

	v3 "github.com/pb33f/libopenapi/datamodel/high/v3"
	"github.com/pb33f/libopenapi/orderedmap"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The document is one of OpenAPI 3.1, by that specification's own schema.
func TestTheDocumentIsValid(t *testing.T) {
	_, errs := New(t).validator.ValidateDocument()
	require.Empty(t, lines("schema/openapi.yaml", errs))
}

// What the document shows as an example is what it describes.
func TestExamplesAreAsDescribed(t *testing.T) {
	c, checked := New(t), 0
	check := func(where string, content *orderedmap.Map[string, *v3.MediaType]) {
		if content == nil {
			return
		}
		for typ, media := range content.FromOldest() {
			require.NotNil(t, media.Schema, "%s, %s: the body has a schema", where, typ)
			if media.Examples == nil {
				continue
			}
			for name, example := range media.Examples.FromOldest() {
				var value any
				require.NoError(t, example.Value.Decode(&value))
				_, errs := c.schemas.ValidateSchemaObjectWithVersion(media.Schema.Schema(), value, 3.1)
				assert.Empty(t, lines(where+", example "+name, errs))
				checked++
			}
		}
	}
	for _, o := range c.operations {
		operation := o.item.GetOperations().GetOrZero(strings.ToLower(o.method))
		if operation.RequestBody != nil {
			check(o.id, operation.RequestBody.Content)
		}
		for status, response := range operation.Responses.Codes.FromOldest() {
			check(o.id+" "+status, response.Content)
		}
	}
	require.Greater(t, checked, 20)
}
