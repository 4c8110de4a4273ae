package gateway

import (
	"sync"

	"github.com/agentplatform/agentplatform/pkg/gateway/internal/tape"
)

// resolve calls the functions that answer something in o for these parents, and below, and waits for them. All parents are at one
// place of the request, so a batch function is called once for all of them.
func (x *execution) resolve(o *object, parents []value) {
	var work []*field
	for _, f := range o.fields {
		if (f.fn != nil || f.walk) && !x.denied(f) {
			work = append(work, f)
		}
	}
	var group sync.WaitGroup
	for i, f := range work {
		if i == len(work)-1 {
			x.resolveField(f, parents)
		} else {
			group.Go(func() { x.resolveField(f, parents) })
		}
	}
	group.Wait()
}

func (x *execution) resolveField(f *field, parents []value) {
	if f.meta() {
		return
	}
	values := make([]value, 0, len(parents))
	if f.fn == nil {
		for _, p := range parents {
			values = append(values, p.member(f.name))
		}
	} else {
		x.call(f, parents)
		s := &x.slots[f.slot]
		for _, p := range parents {
			if a := s.of(p); a != nil && a.problem == nil {
				values = append(values, a.value)
			}
		}
	}
	if f.walk {
		x.resolveBelow(f, values)
	}
}

// resolveBelow goes on with the values of a field.
func (x *execution) resolveBelow(f *field, values []value) {
	if f.concrete != nil {
		if found := objects(nil, values); len(found) > 0 {
			x.resolve(f.concrete, found)
		}
		return
	}
	byType := map[*object][]value{}
	for _, v := range objects(nil, values) {
		if o := f.abstract[typename(v)]; o != nil && o.walk {
			byType[o] = append(byType[o], v)
		}
	}
	var group sync.WaitGroup
	for o, found := range byType {
		group.Go(func() { x.resolve(o, found) })
	}
	group.Wait()
}

// objects collects the objects among the values and in lists of them.
func objects(found, values []value) []value {
	for _, v := range values {
		if v.doc == nil {
			continue
		}
		switch v.doc.Kind(v.at) {
		case tape.Object:
			found = append(found, v)
		case tape.Array:
			for i := v.at + 1; i < v.doc.End(v.at); i = v.doc.End(i) {
				found = objects(found, []value{{v.doc, i}})
			}
		}
	}
	return found
}

func typename(v value) string {
	if name := v.member("__typename"); name.doc != nil && name.doc.Kind(name.at) == tape.String {
		return name.doc.Text(name.at)
	}
	return ""
}

// call fills the field's slot with its function's answers for the parents.
func (x *execution) call(f *field, parents []value) {
	s := &x.slots[f.slot]
	if x.prepareSlot(f); s.problem != nil {
		return
	}
	if x.events.Add(int64(len(parents))) > int64(x.config.MaxEvents) {
		s.problem = invalidArgument("The request needs too many calls: ask for less at a time.", nil)
		return
	}
	s.parent = parents[0]
	if len(parents) > 1 {
		s.others = make(map[value]*answer, len(parents)-1)
		rest := make([]answer, len(parents)-1)
		for i, p := range parents[1:] {
			s.others[p] = &rest[i]
		}
	}
	if f.fn.batch && parents[0].doc != nil {
		x.invokeBatch(f, s, parents)
		return
	}
	var group sync.WaitGroup
	for _, p := range parents[1:] {
		a := s.of(p)
		x.tokens <- struct{}{}
		group.Go(func() {
			defer func() { <-x.tokens }()
			*a = x.invoke(f, s, p)
		})
	}
	x.tokens <- struct{}{}
	s.answer = x.invoke(f, s, parents[0])
	<-x.tokens
	group.Wait()
}

// of is the answer for a parent; nil when the function was not asked about it.
func (s *slot) of(parent value) *answer {
	if parent == s.parent {
		return &s.answer
	}
	return s.others[parent]
}

// prepareSlot computes the field's arguments, once.
func (x *execution) prepareSlot(f *field) *slot {
	s := &x.slots[f.slot]
	if !s.ready {
		s.ready = true
		if s.args = f.args; s.args == nil {
			s.args, s.problem = x.schema.arguments(nil, f, x.vars)
		}
	}
	return s
}
