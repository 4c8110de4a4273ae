package gateway

import (
	"container/list"
	"sync"
)

// cache keeps the documents of the queries used last, as many as fit into a number of bytes of query text. A parsed document takes
// some fifty times its text, so the bound on text bounds memory.
type cache struct {
	mu    sync.Mutex
	left  int // bytes of text that still fit
	whole int
	order *list.List // of *document, the one used last in front
	byKey map[string]*list.Element
}

func newCache(size int) *cache {
	return &cache{left: size, whole: size, order: list.New(), byKey: map[string]*list.Element{}}
}

func (c *cache) get(query string) *document {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byKey[query]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*document)
}

// put keeps d, unless its text alone is a large part of the cache.
func (c *cache) put(d *document) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(d.query) > c.whole/8 || c.byKey[d.query] != nil {
		return
	}
	c.byKey[d.query] = c.order.PushFront(d)
	for c.left -= len(d.query); c.left < 0; {
		last := c.order.Back()
		old := c.order.Remove(last).(*document)
		delete(c.byKey, old.query)
		c.left += len(old.query)
	}
}
