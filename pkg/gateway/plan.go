package gateway

import (
	"errors"
	"slices"
	"sync/atomic"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/agentplatform/agentplatform/pkg/gateway/internal/tape"
)

// plan is an operation made ready to run: fragments spread, fields merged, @skip and @include decided, once for each object type that
// can occur at a place. But for size it does not change, and it is shared by requests.
type plan struct {
	op    *ast.OperationDefinition
	root  *object
	slots int          // fields that have arguments or a function
	size  atomic.Int64 // bytes of the last answer's data: where the next one's buffer starts
}

// object is what is selected of one object type at one place.
type object struct {
	def    *ast.Definition
	fields []*field
	walk   bool // a function answers something in it
}

// field is one member of the response at one place: all fields of the query with its response name.
type field struct {
	key    string // response name
	quoted []byte // `"key":`
	name   string
	nodes  []*ast.Field
	def    *ast.FieldDefinition
	parent *ast.Definition
	access access
	leaf   leaf

	fn   *function // nil: a property of the parent
	slot int       // place of arguments and answers in a request's state; -1: it has neither
	walk bool      // a function answers something below it
	args []byte    // the arguments, when they use no variable

	concrete *object            // the selection, when the type is an object type
	abstract map[string]*object // the selection by object type, when it is not
}

const (
	keptPlans  = 16 // of one document
	planFactor = 10 // how many times MaxFields a plan may hold: one selection counts once for each type it can apply to
)

var errPlanTooLarge = errors.New("the request has too many fields for the types it can apply to")

// plan is the operation's plan for these variables.
func (d *document) plan(g *Gateway, op *ast.OperationDefinition, vars variables) (*plan, error) {
	key := op.Name
	for _, name := range d.switches {
		key += "\x00" + string(vars[name])
	}
	d.mu.Lock()
	p := d.plans[key]
	d.mu.Unlock()
	if p != nil {
		return p, nil
	}
	b := builder{schema: g.schema, functions: g.functions, vars: vars, left: g.config.MaxFields * planFactor, plan: &plan{op: op}}
	b.plan.root = b.object(g.schema.root(op.Operation), []ast.SelectionSet{op.SelectionSet})
	if b.left < 0 {
		return nil, errPlanTooLarge
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.plans) < keptPlans {
		d.plans[key] = b.plan
	}
	return b.plan, nil
}

type builder struct {
	schema    *schema
	functions map[string]*function
	vars      variables
	left      int // fields that the plan may still get
	plan      *plan
}

func (b *builder) object(def *ast.Definition, sets []ast.SelectionSet) *object {
	c := collector{builder: b, def: def, at: map[string]int{}, spread: map[string]bool{}}
	for _, set := range sets {
		c.collect(set)
	}
	o := &object{def: def}
	for _, nodes := range c.groups {
		if b.left--; b.left < 0 {
			break
		}
		f := b.field(def, nodes)
		o.fields = append(o.fields, f)
		o.walk = o.walk || f.walk || f.fn != nil
	}
	return o
}

func (b *builder) field(parent *ast.Definition, nodes []*ast.Field) *field {
	first := nodes[0]
	f := &field{
		key: first.Alias, quoted: append(tape.AppendText(nil, first.Alias), ':'), name: first.Name, nodes: nodes,
		def: first.Definition, parent: parent, slot: -1, fn: b.functions[parent.Name+"."+first.Name],
	}
	f.access = b.schema.access(parent, f.def)
	if f.fn != nil || len(f.def.Arguments) > 0 {
		f.slot = b.plan.slots
		b.plan.slots++
		if !slices.ContainsFunc(first.Arguments, func(a *ast.Argument) bool { return usesVariable(a.Value) }) {
			if args, problem := b.schema.arguments(nil, f, nil); problem == nil {
				f.args = args
			}
		}
	}
	typ := b.schema.Types[f.def.Type.Name()]
	if f.leaf = b.schema.leaf(f); typ.IsLeafType() {
		return f
	}
	var sets []ast.SelectionSet
	for _, n := range nodes {
		sets = append(sets, n.SelectionSet)
	}
	if typ.Kind == ast.Object {
		f.concrete = b.object(typ, sets)
		f.walk = f.concrete.walk
		return f
	}
	f.abstract = map[string]*object{}
	for _, possible := range b.schema.PossibleTypes[typ.Name] {
		if possible.Kind == ast.Object {
			o := b.object(possible, sets)
			f.abstract[possible.Name] = o
			f.walk = f.walk || o.walk
		}
	}
	return f
}
