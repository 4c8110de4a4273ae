package routine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/workflow"
	"github.com/agentplatform/agentplatform/pkg/workflow/asl"
)

// maxProblems is how many of a definition's problems are told at once.
const maxProblems = 20

// reference is a literal id in a definition, to be looked up.
type reference struct {
	location string
	of       of
	id       string
}

// Check refuses a definition that the routine of that name cannot have: a ValidationError with the JSON pointer of each thing that is wrong.
func Check(ctx context.Context, q postgres.Querier, name, definition string) error {
	if len(definition) > MaxDefinition {
		return fault.Invalid("definition is longer than %d bytes", MaxDefinition)
	}
	var references []reference
	_, err := asl.Parse(definition, dialect(&references))
	refused := new(workflow.DefinitionError)
	if err != nil && !errors.As(err, &refused) {
		return fault.Invalid("definition: %s", err.Error())
	}
	missing, err := lookUp(ctx, q, name, references)
	if err != nil {
		return err
	}
	problems := slices.Concat(refused.Problems, missing)
	if len(problems) == 0 { // what was found in order can be compiled, unless that is too much
		compiled, err := Compile(definition, Target{TenantID: aUUID, RoutineID: aUUID, Version: 1 << 30, Function: strings.Repeat("f", maxFunction)})
		if err == nil {
			err = workflow.CheckDefinition(compiled)
		}
		switch {
		case errors.Is(err, workflow.ErrTooLarge):
			return fault.Invalid("definition has too many tasks: a state machine of it would be longer than %d bytes", workflow.MaxDefinition)
		case errors.As(err, &refused):
			problems = refused.Problems
		case err != nil:
			return err
		}
	}
	return invalid(problems)
}

const (
	aUUID       = "ffffffff-ffff-ffff-ffff-ffffffffffff" // as long as any
	maxFunction = 64                                     // bytes of a function's name
)

// invalid tells the problems of a definition, in its order; nil without any.
func invalid(problems []workflow.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	lines := make([]string, 0, maxProblems)
	for i, p := range problems {
		if i == maxProblems {
			lines = append(lines, fmt.Sprintf("and %d more", len(problems)-i))
			break
		}
		lines = append(lines, strings.TrimPrefix(p.Location+": "+p.Message, ": "))
	}
	return fault.Invalid("definition: %s", strings.Join(lines, "; "))
}

// dialect is what a definition may say besides the language: the verbs and their parameters. The ids that those name are added to references.
func dialect(references *[]reference) asl.Dialect {
	return asl.Dialect{Resource: func(resource string, s *asl.State) error {
		v, ok := ParseResource(resource)
		if !ok {
			return fmt.Errorf("a task's Resource is one of %s", resources())
		}
		refused := new(workflow.DefinitionError)
		given, ok := s.Parameters().(map[string]any)
		switch {
		case s.Parameters() == nil: // the verb takes the state's input, which is looked at when it is there
			return nil
		case !ok:
			refused.Problems = []workflow.Problem{{Message: "a task's Parameters must be an object", Location: "/Parameters"}}
		}
		for _, f := range checkParameters(v, given, true) {
			if f.problem != "" {
				refused.Problems = append(refused.Problems, workflow.Problem{Message: f.problem, Location: "/Parameters" + f.place})
			} else {
				*references = append(*references, reference{s.Location + "/Parameters" + f.place, f.of, f.id})
			}
		}
		if len(refused.Problems) > 0 {
			return refused
		}
		return nil
	}}
}

func resources() string {
	names := make([]string, len(Verbs))
	for i, v := range Verbs {
		names[i] = Scheme + string(v)
	}
	return strings.Join(names, ", ")
}

// lookUp finds what the tenant does not have of what a definition names. A routine may name itself before it is there.
func lookUp(ctx context.Context, q postgres.Querier, name string, references []reference) (problems []workflow.Problem, err error) {
	for of, question := range questions {
		var asked []string
		for _, r := range references {
			if r.of == of && !(of == ofRoutineName && r.id == name) {
				asked = append(asked, strings.ToLower(r.id))
				if of == ofRoutineName {
					asked[len(asked)-1] = r.id
				}
			}
		}
		if len(asked) == 0 {
			continue
		}
		there, err := postgres.All(ctx, q, pgx.RowTo[string], question.sql, asked)
		if err != nil {
			return nil, err
		}
		for _, r := range references {
			id := r.id
			if of != ofRoutineName {
				id = strings.ToLower(id)
			}
			if r.of == of && slices.Contains(asked, id) && !slices.Contains(there, id) {
				problems = append(problems, workflow.Problem{Message: question.missing, Location: r.location})
			}
		}
	}
	slices.SortFunc(problems, func(a, b workflow.Problem) int { return strings.Compare(a.Location, b.Location) })
	return problems, nil
}

var questions = map[of]struct{ sql, missing string }{
	ofAgent:       {`select id::text from agents where id = any($1::uuid[]) and status <> 'archived'`, "agent not found"},
	ofRoutine:     {`select id::text from routines where id = any($1::uuid[]) and deleted_at is null`, "routine not found"},
	ofRoutineName: {`select name from routines where name = any($1::text[]) and deleted_at is null`, "routine not found"},
	ofUsers:       {`select id::text from users where id = any($1::uuid[]) and status = 'active'`, "user not found"},
}

// sorted are an object's names in order.
func sorted(object map[string]any) []string { return slices.Sorted(maps.Keys(object)) }

// escape is a name as a part of a JSON pointer (RFC 6901).
func escape(name string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(name) }
