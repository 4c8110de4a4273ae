package standin

import (
	"encoding/xml"
	"fmt"
	"io"
	"net/http"

	"github.com/agentplatform/agentplatform/pkg/ident"
)

var cloudfront = Service{
	Name:       "CloudFront",
	Operations: "CreateResponseHeadersPolicy, GetResponseHeadersPolicy, UpdateResponseHeadersPolicy, DeleteResponseHeadersPolicy",
	Why:        "knows distributions and who may read their origins, and no policies",
	answers: map[string]answer{
		"POST /2020-05-31/response-headers-policy": func(a *AWS, w http.ResponseWriter, r *http.Request) {
			id := ident.New()
			keepPolicy(a, r, id)
			w.Header().Set("Location", "https://cloudfront.amazonaws.com/2020-05-31/response-headers-policy/"+id)
			showPolicy(a, w, id, http.StatusCreated)
		},
		"PUT /2020-05-31/response-headers-policy/{id}": func(a *AWS, w http.ResponseWriter, r *http.Request) {
			keepPolicy(a, r, r.PathValue("id"))
			showPolicy(a, w, r.PathValue("id"), http.StatusOK)
		},
		"GET /2020-05-31/response-headers-policy/{id}": func(a *AWS, w http.ResponseWriter, r *http.Request) {
			showPolicy(a, w, r.PathValue("id"), http.StatusOK)
		},
		"DELETE /2020-05-31/response-headers-policy/{id}": func(a *AWS, w http.ResponseWriter, r *http.Request) {
			delete(a.kept, key("headers", r.PathValue("id")))
			w.WriteHeader(http.StatusNoContent)
		},
	},
}

// keepPolicy keeps what is in the document's root.
func keepPolicy(a *AWS, r *http.Request, id string) {
	var config struct {
		Inner string `xml:",innerxml"`
	}
	text, _ := io.ReadAll(r.Body)
	_ = xml.Unmarshal(text, &config) // what is no document is an empty one
	a.kept[key("headers", id)] = object{"config": config.Inner}
}

func showPolicy(a *AWS, w http.ResponseWriter, id string, status int) {
	w.Header().Set("Content-Type", "text/xml")
	o, ok := a.kept[key("headers", id)]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `<ErrorResponse><Error><Type>Sender</Type><Code>NoSuchResponseHeadersPolicy</Code><Message>policy not found</Message></Error></ErrorResponse>`)
		return
	}
	w.Header().Set("ETag", "E1")
	w.WriteHeader(status)
	fmt.Fprintf(w, `<ResponseHeadersPolicy xmlns="http://cloudfront.amazonaws.com/doc/2020-05-31/"><Id>%s</Id><LastModifiedTime>2026-01-01T00:00:00Z</LastModifiedTime>`+
		`<ResponseHeadersPolicyConfig>%s</ResponseHeadersPolicyConfig></ResponseHeadersPolicy>`, id, o["config"])
}
