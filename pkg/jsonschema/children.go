package jsonschema

import (
	"maps"
	"slices"
)

// items evaluates schemas on the items of a list.
func (e *evaluation) items(n *node, v any, at *place, marks seen) *problem {
	list, ok := v.([]any)
	if !ok {
		return nil
	}
	contained := 0
	for i, item := range list {
		below, sub := &place{at, i}, n.items
		if i < len(n.prefix) {
			sub = n.prefix[i]
		}
		if sub != nil {
			if p := e.check(sub, item, below, nil); p != nil {
				return p
			}
			marks.add(i)
		}
		if n.contains != nil && e.check(n.contains, item, below, nil) == nil {
			contained++
			if n.containedCount {
				marks.add(i)
			}
		}
	}
	if n.contains != nil {
		if n.leastContained == nil && contained == 0 || n.leastContained != nil && !least(count(contained), n.leastContained) {
			return plain(at, "too few items match 'contains'")
		}
		if n.mostContained != nil && !most(count(contained), n.mostContained) {
			return plain(at, "too many items match 'contains'")
		}
	}
	if n.restOfItems == nil {
		return nil
	}
	for i, item := range list {
		if marks[i] {
			continue
		}
		if p := e.check(n.restOfItems, item, &place{at, i}, nil); p != nil {
			return p
		}
		marks.add(i)
	}
	return nil
}

// members evaluates schemas on the members of an object.
func (e *evaluation) members(n *node, v any, at *place, marks seen) *problem {
	m, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	names := slices.Sorted(maps.Keys(m))
	var extra []string
	for _, name := range names {
		below := &place{at, name}
		if n.nameOfAny != nil {
			if p := e.check(n.nameOfAny, name, below, nil); p != nil {
				return p
			}
		}
		var subs []*node
		if sub := n.properties[name]; sub != nil {
			subs = append(subs, sub)
		}
		for _, p := range n.patterns {
			if p.MatchString(name) {
				subs = append(subs, p.node)
			}
		}
		if len(subs) == 0 && n.additional != nil {
			if n.additional.never {
				extra = append(extra, name)
				continue
			}
			subs = append(subs, n.additional)
		}
		for _, sub := range subs {
			if p := e.check(sub, m[name], below, nil); p != nil {
				return p
			}
			marks.add(name)
		}
	}
	if extra != nil {
		return &problem{at, func() string { return "additional properties " + showAll(extra) + " not allowed" }}
	}
	if n.restOfMembers == nil {
		return nil
	}
	for _, name := range names {
		if marks[name] {
			continue
		}
		if p := e.check(n.restOfMembers, m[name], &place{at, name}, nil); p != nil {
			if n.restOfMembers.never {
				return plain(at, "property "+show(name)+" not allowed")
			}
			return p
		}
		marks.add(name)
	}
	return nil
}
