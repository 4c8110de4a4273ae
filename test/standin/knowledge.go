package standin

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/agentplatform/agentplatform/pkg/ident"
)

// Knowledge bases themselves are moto's, with their tags. Whether the database has the table is not asked, and no document is taken in.
var knowledge = Service{
	Name:       "Bedrock knowledge bases",
	Operations: "CreateKnowledgeBase, GetKnowledgeBase, CreateDataSource, GetDataSource, UpdateDataSource, DeleteDataSource",
	Why:        "has no data sources, and tells of a knowledge base in a form that no client reads",
	answers: map[string]answer{
		"PUT /knowledgebases/{base}/datasources/{$}": func(a *AWS, w http.ResponseWriter, r *http.Request) {
			o, id := body(r), ident.New()
			delete(o, "clientToken")
			if o["dataDeletionPolicy"] == nil {
				o["dataDeletionPolicy"] = "DELETE"
			}
			maps.Copy(o, object{"dataSourceId": id, "knowledgeBaseId": r.PathValue("base"), "status": "AVAILABLE", "createdAt": written(time.Now()), "updatedAt": written(time.Now())})
			a.kept[key("data source of knowledge", r.PathValue("base"), id)] = o
			reply(w, object{"dataSource": o})
		},
		"GET /knowledgebases/{base}/datasources/{id}": ofDocuments(func(_ *AWS, _ *http.Request, _ string, o object) object { return object{"dataSource": o} }),
		"PUT /knowledgebases/{base}/datasources/{id}": ofDocuments(func(_ *AWS, r *http.Request, _ string, o object) object {
			maps.Copy(o, body(r))
			o["updatedAt"] = written(time.Now())
			return object{"dataSource": o}
		}),
		"DELETE /knowledgebases/{base}/datasources/{id}": ofDocuments(func(a *AWS, r *http.Request, at string, _ object) object {
			delete(a.kept, at)
			return object{"dataSourceId": r.PathValue("id"), "knowledgeBaseId": r.PathValue("base"), "status": "DELETING"}
		}),
	},
	amends: []amendment{
		{of: regexp.MustCompile(`^bedrock (PUT|GET) /knowledgebases/[^/]*$`), answer: func(body []byte) []byte {
			body = bytes.Replace(body, []byte(`"status": "Active"`), []byte(`"status": "ACTIVE"`), 1)
			return seconds.ReplaceAllFunc(body, func(found []byte) []byte {
				name, number, _ := bytes.Cut(found, []byte(": "))
				at, err := strconv.ParseFloat(string(number), 64)
				if err != nil {
					return found
				}
				return fmt.Appendf(nil, "%s: %q", name, written(time.Unix(int64(at), 0)))
			})
		}},
		// Moto knows the Data API of the first Serverless only.
		{of: regexp.MustCompile(`^rds (Create|Describe|Modify)DBClusters?$`), answer: func(body []byte) []byte {
			return bytes.ReplaceAll(body, []byte("<HttpEndpointEnabled>false<"), []byte("<HttpEndpointEnabled>true<"))
		}},
	},
}

// ofDocuments answers what is asked of a data source; at is where it is kept.
func ofDocuments(then func(a *AWS, r *http.Request, at string, source object) object) answer {
	return func(a *AWS, w http.ResponseWriter, r *http.Request) {
		at := key("data source of knowledge", r.PathValue("base"), r.PathValue("id"))
		o, ok := a.kept[at]
		if !ok {
			missing(w, "ResourceNotFoundException", "data source")
			return
		}
		reply(w, then(a, r, at, o))
	}
}

// seconds are times as moto writes them.
var seconds = regexp.MustCompile(`"(createdAt|updatedAt)": [0-9.]+`)

func written(t time.Time) string { return t.UTC().Format(time.RFC3339) }
