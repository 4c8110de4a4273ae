package gateway

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/manifest"
)

// Config is what a gateway serves, and its limits. A limit of 0 takes the default.
type Config struct {
	SDL       string                    // the schema
	Prelude   string                    // scalars and directives that the SDL uses without declaring them
	Manifest  manifest.Manifest         // which function answers which field
	Functions map[string]lambda.Handler // by manifest name; every row with a graphql trigger needs one
	Log       *slog.Logger              // causes of internal errors; default slog.Default()

	MaxDepth         int // nesting of fields, introspection apart; default 10
	MaxIntrospection int // nesting of fields under __schema and __type; default 20
	MaxRootFields    int // fields at the root of an operation; default 50
	MaxFields        int // fields of all operations after fragment expansion; default 2,000
	MaxTokens        int // lexical tokens of a request; default 10,000
	MaxParallel      int // function calls of one request at the same time; default 16
	MaxEvents        int // events sent to functions by one request; default 20,000
	MaxAnswer        int // bytes of a response's data; default 5 MiB, as AppSync
	CacheBytes       int // query text whose parsed form is kept; default 2 MiB
}

func (c *Config) defaults() {
	for limit, value := range map[*int]int{
		&c.MaxDepth: 10, &c.MaxIntrospection: 20, &c.MaxRootFields: 50, &c.MaxFields: 2_000, &c.MaxTokens: 10_000,
		&c.MaxParallel: 16, &c.MaxEvents: 20_000, &c.MaxAnswer: 5 << 20, &c.CacheBytes: 2 << 20,
	} {
		if *limit == 0 {
			*limit = value
		}
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
}

// Gateway answers requests; it is safe for concurrent use and holds no goroutine between requests.
type Gateway struct {
	config    Config
	schema    *schema
	functions map[string]*function // by "Type.field"
	documents *cache
}

// function answers one field.
type function struct {
	field   string // "Type.field"
	name    string // manifest name
	handler lambda.Handler
	direct  inProcess // nil: only through handler
	batch   bool
	timeout time.Duration // 0: the caller's context alone
	head    []byte        // the event up to its arguments
}

// New builds a gateway. It refuses an SDL that does not hold together, a row for a field that does not exist, and a row without its
// function.
func New(config Config) (*Gateway, error) {
	config.defaults()
	schema, err := newSchema(config.Prelude, config.SDL)
	if err != nil {
		return nil, fmt.Errorf("gateway: schema: %w", err)
	}
	g := &Gateway{config: config, schema: schema, functions: map[string]*function{}, documents: newCache(config.CacheBytes)}
	for field, row := range config.Manifest.ByGraphQL() {
		handler := config.Functions[row.Name]
		if handler == nil {
			return nil, fmt.Errorf("gateway: the manifest names %q for %s, and there is no such function", row.Name, field)
		}
		typ, name, _ := strings.Cut(field, ".")
		if def := schema.Types[typ]; def == nil || def.Fields.ForName(name) == nil {
			return nil, fmt.Errorf("gateway: the manifest names %q for %s, and the schema has no such field", row.Name, field)
		}
		direct, _ := handler.(inProcess)
		g.functions[field] = &function{
			field: field, name: row.Name, handler: handler, direct: direct, batch: row.Batch, timeout: row.Timeout.Duration(),
			head: []byte(`{"field":"` + field + `","arguments":`),
		}
	}
	return g, nil
}

// Publishes lists the subscription fields that a publish mutation feeds, by @aws_subscribe.
func (g *Gateway) Publishes(mutation string) []string { return g.schema.feeds[mutation] }
