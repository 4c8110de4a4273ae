package standin

import (
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentplatform/agentplatform/pkg/ident"
)

// CloudFormation makes what infra/ has templates for, of the few types in maker; a template with another is refused by the type's name.
var cloudformation = Service{
	Name:       "CloudFormation",
	Operations: "CreateStack, DescribeStacks, GetTemplate, UpdateStack, DeleteStack",
	Why:        "makes none of the types of resources that infra/ makes by it: secrets with generated values, and what Bedrock AgentCore runs",
	answers: map[string]answer{
		"cloudformation CreateStack":    createStack,
		"cloudformation UpdateStack":    updateStack,
		"cloudformation DescribeStacks": describeStacks,
		"cloudformation GetTemplate":    getTemplate,
		"cloudformation DeleteStack":    deleteStack,
	},
}

// stack is what is kept of one.
type stack struct {
	id, name, template, status string
	parameters, outputs, tags  map[string]string
	resources                  map[string]made // by logical name
}

// made is one resource of a stack: what Ref and GetAtt give, and how it goes.
type made struct {
	ref        string
	attributes map[string]string
	remove     func() error
}

func createStack(a *AWS, w http.ResponseWriter, r *http.Request) {
	name := r.PostFormValue("StackName")
	s := &stack{id: "arn:aws:cloudformation:" + region(r) + ":" + Account + ":stack/" + name + "/" + ident.New(), name: name, resources: map[string]made{}}
	if err := a.fill(s, r); err != nil {
		refuseQuery(w, "ValidationError", err.Error())
		return
	}
	s.status = "CREATE_COMPLETE"
	a.stacks[name] = s
	replyQuery(w, "CreateStack", "<StackId>"+s.id+"</StackId>")
}

func updateStack(a *AWS, w http.ResponseWriter, r *http.Request) {
	s := a.stack(w, r)
	if s == nil {
		return
	}
	if err := a.fill(s, r); err != nil {
		refuseQuery(w, "ValidationError", err.Error())
		return
	}
	s.status = "UPDATE_COMPLETE"
	replyQuery(w, "UpdateStack", "<StackId>"+s.id+"</StackId>")
}

// fill reads a stack from a form and makes of it what is not there yet.
func (a *AWS) fill(s *stack, r *http.Request) error {
	s.template, s.parameters, s.outputs = r.PostFormValue("TemplateBody"), members(r.PostForm, "Parameters", "ParameterKey", "ParameterValue"), map[string]string{}
	s.tags = members(r.PostForm, "Tags", "Key", "Value")
	t, err := parseTemplate(s.template)
	if err != nil {
		return err
	}
	given := map[string]string{"AWS::Region": region(r), "AWS::AccountId": Account, "AWS::StackName": s.name, "AWS::Partition": "aws"}
	maps.Copy(given, s.parameters)
	for name := range s.parameters {
		if _, ok := t.Parameters[name]; !ok {
			return fmt.Errorf("parameter %s does not exist in the template", name)
		}
	}
	for name := range t.Parameters {
		if _, ok := given[name]; !ok {
			return fmt.Errorf("parameter %s must have a value", name)
		}
	}
	e := evaluation{given, s.resources}
	for _, logical := range slices.Sorted(maps.Keys(t.Resources)) {
		resource := t.Resources[logical]
		properties, err := e.value(resource.Properties)
		if err != nil {
			return err
		}
		if _, there := s.resources[logical]; there {
			continue
		}
		make, ok := maker[resource.Type]
		if !ok {
			return fmt.Errorf("the stand-in makes no %s", resource.Type)
		}
		fields, _ := properties.(map[string]any)
		if s.resources[logical], err = make(a, region(r), fields); err != nil {
			return fmt.Errorf("%s: %w", logical, err)
		}
	}
	for name, output := range t.Outputs {
		value, err := e.value(output.Value)
		if err != nil {
			return err
		}
		s.outputs[name] = fmt.Sprint(value)
	}
	return nil
}

// members are the pairs of a list in a form.
func members(form url.Values, list, key, value string) map[string]string {
	all := map[string]string{}
	for i := 1; form.Has(list + ".member." + strconv.Itoa(i) + "." + key); i++ {
		at := list + ".member." + strconv.Itoa(i) + "."
		all[form.Get(at+key)] = form.Get(at + value)
	}
	return all
}

// stack is the one that a call names, by name or id; nil: it has been answered that there is none.
func (a *AWS) stack(w http.ResponseWriter, r *http.Request) *stack {
	_ = r.ParseForm()
	asked := r.PostFormValue("StackName")
	for _, s := range a.stacks {
		if s.name == asked || s.id == asked {
			return s
		}
	}
	refuseQuery(w, "ValidationError", "Stack with id "+asked+" does not exist")
	return nil
}

func describeStacks(a *AWS, w http.ResponseWriter, r *http.Request) {
	s := a.stack(w, r)
	if s == nil {
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "<Stacks><member><StackId>%s</StackId><StackName>%s</StackName><CreationTime>%s</CreationTime><StackStatus>%s</StackStatus><DisableRollback>false</DisableRollback>",
		s.id, s.name, time.Now().UTC().Format(time.RFC3339), s.status)
	for _, list := range []struct {
		name, key, value string
		pairs            map[string]string
	}{{"Parameters", "ParameterKey", "ParameterValue", s.parameters}, {"Outputs", "OutputKey", "OutputValue", s.outputs}, {"Tags", "Key", "Value", s.tags}} {
		fmt.Fprintf(&b, "<%s>", list.name)
		for _, name := range slices.Sorted(maps.Keys(list.pairs)) {
			fmt.Fprintf(&b, "<member><%[1]s>%[2]s</%[1]s><%[3]s>%[4]s</%[3]s></member>", list.key, name, list.value, html.EscapeString(list.pairs[name]))
		}
		fmt.Fprintf(&b, "</%s>", list.name)
	}
	b.WriteString("</member></Stacks>")
	replyQuery(w, "DescribeStacks", b.String())
}

func getTemplate(a *AWS, w http.ResponseWriter, r *http.Request) {
	if s := a.stack(w, r); s != nil {
		replyQuery(w, "GetTemplate", "<TemplateBody>"+html.EscapeString(s.template)+"</TemplateBody>")
	}
}

// deleteStack leaves its stack to be found by its id, as AWS does for a while.
func deleteStack(a *AWS, w http.ResponseWriter, r *http.Request) {
	s := a.stack(w, r)
	if s == nil {
		return
	}
	for logical, m := range s.resources {
		if err := m.remove(); err != nil {
			refuseQuery(w, "ValidationError", logical+": "+err.Error())
			return
		}
	}
	s.name, s.status, s.resources = "", "DELETE_COMPLETE", nil
	replyQuery(w, "DeleteStack", "")
}

// refuseQuery and replyQuery are a Query service's answers.
func refuseQuery(w http.ResponseWriter, code, message string) {
	w.Header().Set("Content-Type", "text/xml")
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprintf(w, "<ErrorResponse><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message></Error><RequestId>%s</RequestId></ErrorResponse>", code, html.EscapeString(message), ident.New())
}

func replyQuery(w http.ResponseWriter, operation, result string) {
	w.Header().Set("Content-Type", "text/xml")
	fmt.Fprintf(w, "<%[1]sResponse><%[1]sResult>%[2]s</%[1]sResult><ResponseMetadata><RequestId>%[3]s</RequestId></ResponseMetadata></%[1]sResponse>", operation, result, ident.New())
}
