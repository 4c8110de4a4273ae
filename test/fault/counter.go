package main

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// book is an MCP tool server outside of the platform, which outlives it: what happens in it has happened. Its tool `enter` has an effect that must not be
// had twice, and the server says nothing of being idempotent; `look` only reads.
type book struct {
	server *httptest.Server

	mu      sync.Mutex
	entries map[string]int // how often each was entered
	looks   int
	holding map[string]chan struct{} // entries that are entered and not answered until the channel is closed
	entered chan string              // told of those
}

type entry struct {
	Key string `json:"key"`
}

func openBook() *book {
	b := &book{entries: map[string]int{}, holding: map[string]chan struct{}{}, entered: make(chan string, 1)}
	s := mcp.NewServer(&mcp.Implementation{Name: "book", Version: "1"}, nil)
	for _, name := range []string{"enter", "pay"} {
		mcp.AddTool(s, &mcp.Tool{Name: name, Description: "Enters something."}, func(_ context.Context, _ *mcp.CallToolRequest, e entry) (*mcp.CallToolResult, any, error) {
			b.enter(e.Key)
			return text("entered"), nil, nil
		})
	}
	mcp.AddTool(s, &mcp.Tool{Name: "look", Description: "Reads the book.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.looks++
			return text("a book"), nil, nil
		})
	b.server = httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true}))
	return b
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

func (b *book) enter(key string) {
	b.mu.Lock()
	b.entries[key]++
	held := b.holding[key]
	b.mu.Unlock()
	if held != nil {
		b.entered <- key
		<-held
	}
}

// hold has the answer to an entry wait; the function lets it go.
func (b *book) hold(key string) func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	held := make(chan struct{})
	b.holding[key] = held
	return sync.OnceFunc(func() { close(held) })
}

// times is how often each entry was made.
func (b *book) times() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.entries)
}

func (b *book) close() { b.server.CloseClientConnections(); b.server.Close() }
