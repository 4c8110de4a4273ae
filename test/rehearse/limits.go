package main

import (
	"fmt"
	"strings"

	"github.com/agentplatform/agentplatform/test/standin"
)

// unseen is what a deployment to the stand-in does not show, and why.
var unseen = []struct{ what, why string }{
	{"whether AWS takes it", "quotas, names that others have, rights of whoever deploys, and what a service checks of its settings are not looked at"},
	{"policies and keys", "nobody is refused anything, and nothing is encrypted"},
	{"the network", "subnets, endpoints and security groups carry nothing, and functions run outside of them"},
	{"the database's service", "RDS is an address without a server; the functions that a deployment calls get a PostgreSQL on this machine instead, by password and without TLS"},
	{"GraphQL", "AppSync answers no field and no subscription; test/appsync runs resolvers and schema"},
	{"the HTTP API", "API Gateway passes no request on and checks no token; test/e2e sends the requests to a one-machine platform"},
	{"functions beside a deployment's own", "nothing calls them; test/e2e runs their programs"},
	{"schedules and state machines", "the scheduler never calls, no execution is begun, and no rule is told of one; test/workflow runs the state machine"},
	{"the agent runtime, its memory and the knowledge base", "they are names: no container is started, no document is taken in"},
	{"the console", "CloudFront serves nothing"},
	{"names and certificates", "no name leads anywhere, and a certificate is proven when it is looked at for the second time"},
	{"mail, devices and alarms", "nothing is sent or received, and no alarm ever goes off"},
	{"waiting", "a database, a distribution and a certificate take minutes on AWS"},
}

// otherwise are the settings that differ from a deployment's for moto's sake; the others that differ let it be destroyed again.
var otherwise = []struct{ setting, why string }{
	{"deny_insecure_transport = false", "moto ignores the conditions of a bucket's policy, and would refuse everything"},
	{"audit_cold_small = false", "moto's lifecycles know no sizes"},
}

// limits are what moto cannot do, as a list.
func limits() string {
	var b strings.Builder
	b.WriteString("What moto cannot do, and the stand-in does in its place:\n\n")
	for _, s := range standin.Services {
		fmt.Fprintf(&b, "- %s: moto %s. (%s)\n", s.Name, s.Why, s.Operations)
	}
	b.WriteString("\nWhat a deployment to it does not show:\n\n")
	for _, u := range unseen {
		fmt.Fprintf(&b, "- %s: %s.\n", u.what, u.why)
	}
	b.WriteString("\nWhat is set otherwise for it:\n\n")
	for _, o := range otherwise {
		fmt.Fprintf(&b, "- `%s`: %s.\n", o.setting, o.why)
	}
	return b.String()
}
