package layout_test

import (
	"strings"
	"testing"

	"github.com/pb33f/libopenapi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/schema"
)

// schemes is the security scheme of schema/openapi.yaml for each auth that an http row can have.
var schemes = map[manifest.Auth]string{
	manifest.AuthUser:      "user",
	manifest.AuthWebhook:   "webhookToken",
	manifest.AuthSecret:    "apiSecret",
	manifest.AuthSignature: "integrationSignature",
}

// An http row is an operation of the REST API's contract, which has no others. GraphQL over HTTP has a contract of its own, the SDL.
func TestAnHTTPRowIsAnOperationOfTheContract(t *testing.T) {
	document, err := libopenapi.NewDocument(schema.OpenAPI)
	require.NoError(t, err)
	model, err := document.BuildV3Model()
	require.NoError(t, err)
	type operation struct{ name, scheme string }
	described, wanted := map[string]operation{}, map[string]operation{}
	for path, item := range model.Model.Paths.PathItems.FromOldest() {
		for method, o := range item.GetOperations().FromOldest() {
			key := strings.ToUpper(method) + " " + path
			name, _, _ := strings.Cut(o.OperationId, ".") // a row of several paths has an operation each
			described[key] = operation{name: name}
			if assert.Len(t, o.Security, 1, "%s: one way to authenticate", key) && assert.Equal(t, 1, o.Security[0].Requirements.Len(), key) {
				described[key] = operation{name, o.Security[0].Requirements.First().Key()}
			}
			assert.NotEmpty(t, o.Description, "%s: what it does", key)
		}
	}
	for _, row := range rows(t).Rows {
		for _, key := range row.Triggers("http") {
			if key != "POST /graphql" {
				wanted[key] = operation{row.Name, schemes[row.Auth]}
				if row.Auth == manifest.AuthWebhook && strings.HasPrefix(key, "POST /integrations/") {
					wanted[key] = operation{row.Name, "taskToken"} // trackers send no header
				}
			}
		}
	}
	require.Equal(t, wanted, described, "http rows of routes.json against operations of openapi.yaml: operationId is the row's name, security its auth")
}
