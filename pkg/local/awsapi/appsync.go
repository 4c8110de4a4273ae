package awsapi

import (
	"encoding/json"
	"log/slog"
	"net/http"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/agentplatform/agentplatform/pkg/publish"
)

// appSync takes the publish mutations, hands their event to the subscribers, and answers with it, whole.
type appSync struct{ publisher publish.Publisher }

func (a appSync) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Query     string
		Variables struct{ Event string }
	}
	if json.NewDecoder(r.Body).Decode(&in) != nil {
		problem(w, "BadRequestException", "the body is {query, variables: {event: JSON text}}")
		return
	}
	topic := mutation(in.Query)
	event, err := publish.Decode([]byte(in.Variables.Event))
	if err != nil {
		problem(w, "MappingTemplate", err.Error())
		return
	}
	if event.Address().Topic != topic {
		problem(w, "ValidationError", "the document publishes nothing, or another kind of event")
		return
	}
	if err := a.publisher.Publish(r.Context(), event); err != nil {
		slog.Error("an event of a function could not be published", "error", err)
		problem(w, "InternalFailure", "the event could not be published")
		return
	}
	write(w, http.StatusOK, map[string]any{"data": map[publish.Topic]json.RawMessage{topic: json.RawMessage(in.Variables.Event)}})
}

// mutation is the one field of a document's one mutation; empty for any other document.
func mutation(query string) publish.Topic {
	document, err := parser.ParseQuery(&ast.Source{Input: query})
	if err != nil || len(document.Operations) != 1 || document.Operations[0].Operation != ast.Mutation || len(document.Operations[0].SelectionSet) != 1 {
		return ""
	}
	field, ok := document.Operations[0].SelectionSet[0].(*ast.Field)
	if !ok || field.Alias != field.Name {
		return ""
	}
	return publish.Topic(field.Name)
}

// problem is a GraphQL error, with status 200 as AppSync answers it.
func problem(w http.ResponseWriter, kind, message string) {
	write(w, http.StatusOK, map[string]any{"data": nil, "errors": []map[string]string{{"errorType": kind, "message": message}}})
}
