package standin

import (
	"maps"
	"net/http"
	"regexp"
)

// AppSync beyond the API itself. A data source or resolver is what was said last; a domain has an address of the form that AWS gives.
var appsync = Service{
	Name: "AppSync",
	Operations: "CreateDataSource, GetDataSource, UpdateDataSource, DeleteDataSource, CreateResolver, GetResolver, UpdateResolver, DeleteResolver, " +
		"CreateDomainName, GetDomainName, UpdateDomainName, DeleteDomainName, AssociateApi, GetApiAssociation, DisassociateApi, CreateGraphqlApi, UpdateGraphqlApi, GetGraphqlApi",
	Why: "knows an API with its schema, forgets some of its settings, and has nothing that answers its fields or gives it another name",
	answers: collect(
		collection{kind: "data source", path: "/v1/apis/{api}/datasources", id: "name", wrapped: "dataSource"}.answers(),
		collection{kind: "resolver", path: "/v1/apis/{api}/types/{type}/resolvers", id: "fieldName", wrapped: "resolver"}.answers(),
		collection{kind: "domain", path: "/v1/domainnames", id: "domainName", wrapped: "domainNameConfig", more: func(o object) {
			o["appsyncDomainName"], o["hostedZoneId"] = "d333333standin.cloudfront.net", "Z2FDTNDATAQYW2" // the zone of all distributions
		}}.answers(),
		map[string]answer{
			"POST /v1/domainnames/{name}/apiassociation":   associate,
			"GET /v1/domainnames/{name}/apiassociation":    association,
			"DELETE /v1/domainnames/{name}/apiassociation": dissociate,
		},
	),
	amends: []amendment{{
		told: api,
		of:   regexp.MustCompile(`^appsync `),
		question: func(r *http.Request) {
			r.URL.Path, r.URL.RawPath = plain.ReplaceAllString(r.URL.Path, "$1-$2-$3-$4-$5"), plain.ReplaceAllString(r.URL.RawPath, "$1-$2-$3-$4-$5")
		},
		answer: func(body []byte) []byte { return hyphened.ReplaceAll(body, []byte("$1$2$3$4$5")) },
	}},
}

// api keeps what an API was told, and has addresses of AWS's form.
func api(a *AWS, r *http.Request, said, given object) {
	o, ok := given["graphqlApi"].(object)
	if !ok {
		return
	}
	id, _ := o["apiId"].(string)
	k := key("api", id)
	if a.kept[k] == nil {
		a.kept[k] = object{"apiType": "GRAPHQL", "introspectionConfig": "ENABLED", "uris": object{
			"GRAPHQL":  "https://" + id + ".appsync-api." + region(r) + ".amazonaws.com/graphql",
			"REALTIME": "wss://" + id + ".appsync-realtime-api." + region(r) + ".amazonaws.com/graphql",
		}}
	}
	maps.Copy(a.kept[k], said)
	maps.Copy(o, a.kept[k])
	delete(o, "mergedApiExecutionRoleArn")
}

// An API's id has no hyphen: the provider takes a data source's id, <API>-<name>, apart at the first. Moto's has four.
var (
	plain    = regexp.MustCompile(`\b([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})\b`)
	hyphened = regexp.MustCompile(`\b([0-9a-f]{8})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{12})\b`)
)

// collection are things of one kind below a path.
type collection struct {
	kind, path, id, wrapped string
	more                    func(o object) // what AWS adds
}

func (c collection) at(r *http.Request, id string) string {
	return key(c.kind, r.PathValue("api"), r.PathValue("type"), id)
}

func (c collection) answers() map[string]answer {
	return map[string]answer{
		"POST " + c.path: func(a *AWS, w http.ResponseWriter, r *http.Request) {
			o := body(r)
			id, _ := o[c.id].(string)
			if typ := r.PathValue("type"); typ != "" {
				o["typeName"] = typ
			}
			o[c.wrapped+"Arn"] = "arn:aws:appsync:" + region(r) + ":" + Account + ":" + r.URL.Path[len("/v1/"):] + "/" + id
			if c.more != nil {
				c.more(o)
			}
			a.kept[c.at(r, id)] = o
			reply(w, object{c.wrapped: o})
		},
		"POST " + c.path + "/{id}": c.found(c.update),
		"GET " + c.path + "/{id}":  c.found(func(a *AWS, w http.ResponseWriter, r *http.Request, o object) { reply(w, object{c.wrapped: o}) }),
		"DELETE " + c.path + "/{id}": c.found(func(a *AWS, w http.ResponseWriter, r *http.Request, _ object) {
			delete(a.kept, c.at(r, r.PathValue("id")))
			reply(w, object{})
		}),
	}
}

func (c collection) found(then func(*AWS, http.ResponseWriter, *http.Request, object)) answer {
	return func(a *AWS, w http.ResponseWriter, r *http.Request) {
		if o, ok := a.kept[c.at(r, r.PathValue("id"))]; ok {
			then(a, w, r, o)
			return
		}
		missing(w, "NotFoundException", c.kind)
	}
}

// update leaves what nobody says, and what cannot be said, as it was.
func (c collection) update(_ *AWS, w http.ResponseWriter, r *http.Request, o object) {
	maps.Copy(o, body(r))
	reply(w, object{c.wrapped: o})
}

func associate(a *AWS, w http.ResponseWriter, r *http.Request) {
	o := object{"domainName": r.PathValue("name"), "apiId": body(r)["apiId"], "associationStatus": "SUCCESS"}
	a.kept[key("association", r.PathValue("name"))] = o
	reply(w, object{"apiAssociation": o})
}

func association(a *AWS, w http.ResponseWriter, r *http.Request) {
	if o, ok := a.kept[key("association", r.PathValue("name"))]; ok {
		reply(w, object{"apiAssociation": o})
		return
	}
	missing(w, "NotFoundException", "association")
}

func dissociate(a *AWS, w http.ResponseWriter, r *http.Request) {
	delete(a.kept, key("association", r.PathValue("name")))
	reply(w, object{})
}

func collect(parts ...map[string]answer) map[string]answer {
	all := map[string]answer{}
	for _, part := range parts {
		maps.Copy(all, part)
	}
	return all
}
