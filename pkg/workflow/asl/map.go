package asl

import "maps"

// Items is what a Map maps: its input, or what ItemsPath finds there.
func (s *State) Items(input any, c Context) ([]any, *Failure) {
	value, has := evaluate(input, c).selected(s.items)
	if !has {
		return nil, failure(ErrorRuntime, "Invalid path '%s' : No results for path", s.items.text)
	}
	list, is := value.([]any)
	if !is {
		where := "$"
		if s.items != nil {
			where = s.items.text
		}
		return nil, failure(ErrorRuntime, "Reference path \"%s\" must point to array, but is %s", where, kindOf(value))
	}
	return list, nil
}

// Item is the input of a Map's item: by ItemSelector (or the older Parameters), else the value. input is Input's, c the Map's context.
func (s *State) Item(input any, index int, value any, c Context) (any, *Failure) {
	if s.parameters == nil {
		return value, nil
	}
	e := evaluate(input, ItemContext(c, index, value))
	item := e.filled(s.parameters)
	if e.failed == nil {
		e.failed = fits("The input of an item of the state '"+s.Name+"'", item)
	}
	if e.failed != nil {
		return nil, e.failed
	}
	return item, nil
}

// ItemContext is the context of a Map's item, and of the states in it.
func ItemContext(c Context, index int, value any) Context {
	inner := maps.Clone(c)
	if inner == nil {
		inner = Context{}
	}
	inner["Map"] = map[string]any{"Item": map[string]any{"Index": Number(index), "Value": value}}
	return inner
}

// Concurrency is how many items of a Map may be under way at once; 0 is all.
func (s *State) Concurrency(input any, c Context) (int, *Failure) {
	if s.concurrency == nil {
		return s.MaxConcurrency, nil
	}
	e := evaluate(input, c)
	value, has := e.find(s.concurrency)
	n, is := integer(value)
	if !has || !is || n < 0 || n > maxSeconds {
		return 0, failure(ErrorRuntime, "The MaxConcurrencyPath field refers to a value which is not a valid integer: %s", s.concurrency.text)
	}
	return int(n), nil
}
