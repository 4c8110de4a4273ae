package asl

// find is what a path finds. What has to be there and is not is false: a name in no object, an index in no array. Behind a step that may find several
// values (a slice, *, .., a filter) nothing has to be there. A path with such a step finds a list.
func (e *evaluation) find(p *path) (any, bool) {
	if p.context {
		return e.findIn(e.context, e.context, p)
	}
	return e.findIn(e.data, e.data, p)
}

// findIn is find from a value on; $ in a filter is root.
func (e *evaluation) findIn(from, root any, p *path) (any, bool) {
	if p.definite {
		return e.follow(from, p.steps)
	}
	w := walk{evaluation: e, root: root, found: []any{}}
	has := w.step(from, p.steps, true)
	return w.found, has
}

// follow goes down names and single indices.
func (e *evaluation) follow(value any, steps []step) (any, bool) {
	e.spend(1 + len(steps))
	for _, s := range steps {
		has := false
		if s.kind == named {
			object, _ := value.(map[string]any)
			value, has = object[s.name]
		} else {
			array, _ := value.([]any)
			value, has = at(array, s.indices[0])
		}
		if !has {
			return nil, false
		}
	}
	return value, true
}

func at(array []any, i int) (any, bool) {
	if i < 0 {
		i += len(array)
	}
	if i < 0 || i >= len(array) {
		return nil, false
	}
	return array[i], true
}

// walk collects what a path finds.
type walk struct {
	*evaluation
	root  any
	found []any
}

// step takes the first step from value, and the others from there. sure says that value is the only one to take it from: then what is not there is
// an error, which is false.
func (w *walk) step(value any, steps []step, sure bool) bool {
	if !w.spend(1) {
		return true
	}
	if len(steps) == 0 {
		w.found = append(w.found, value)
		return true
	}
	rest := steps[1:]
	object, _ := value.(map[string]any)
	array, isArray := value.([]any)
	switch s := &steps[0]; s.kind {
	case named:
		member, has := object[s.name]
		return has && w.step(member, rest, sure) || !has && !sure
	case indexed:
		for _, i := range s.indices {
			if item, has := at(array, i); has && !w.step(item, rest, sure && len(s.indices) == 1) {
				return false
			}
		}
		return isArray || !sure
	case sliced:
		from, to := s.slice(len(array))
		w.each(array[from:to], rest)
		return isArray || !sure
	case every:
		w.each(array, rest)
		for _, name := range names(object) {
			w.step(object[name], rest, false)
		}
	case descend:
		w.descend(value, rest)
	case filtered:
		if object != nil {
			w.filter(s.filter, object, rest)
			return true
		}
		for _, item := range array {
			w.filter(s.filter, item, rest)
		}
		return isArray || !sure
	}
	return true
}

func (w *walk) each(items []any, steps []step) {
	for _, item := range items {
		w.step(item, steps, false)
	}
}

func (w *walk) filter(c *condition, value any, steps []step) {
	if w.holds(c, value, w.root) {
		w.step(value, steps, false)
	}
}

// descend takes the steps from value and from each object and array in it. A filter looks at objects only, each once.
func (w *walk) descend(value any, steps []step) {
	object, isObject := value.(map[string]any)
	array, isArray := value.([]any)
	if !w.spend(1) || !isObject && !isArray {
		return
	}
	if isObject || steps[0].kind != filtered {
		w.step(value, steps, false)
	}
	for _, item := range array {
		w.descend(item, steps)
	}
	for _, name := range names(object) {
		w.descend(object[name], steps)
	}
}

// slice is from where to where a slice goes in an array of n values.
func (s *step) slice(n int) (from, to int) {
	to = n
	if s.from != nil {
		from = bound(*s.from, n)
	}
	if s.to != nil {
		to = bound(*s.to, n)
	}
	return from, max(from, to)
}

// bound is an index within 0 and n; below 0 it counts from the end.
func bound(i, n int) int {
	if i < 0 {
		i += n
	}
	return min(max(i, 0), n)
}
