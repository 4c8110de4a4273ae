// Package metrics adds up what CloudWatch adds up in AWS, for Prometheus to read on one machine.
package metrics

import (
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/agentplatform/agentplatform/pkg/metric"
)

// Page is a sink of metrics and the page that shows them. A figure "turn.duration" of milliseconds is the histogram agentplatform_turn_duration_seconds; one of seconds is a gauge, for
// it says how late something is now: "tasks.events.lateness" is agentplatform_tasks_events_lateness_seconds; all others are counters: "tokens.input" is agentplatform_tokens_input_total.
type Page struct {
	http.Handler
	registry   *prometheus.Registry
	mu         sync.Mutex
	counters   map[string]*prometheus.CounterVec
	histograms map[string]*prometheus.HistogramVec
	gauges     map[string]*prometheus.GaugeVec
}

// New makes an empty page.
func New() *Page {
	r := prometheus.NewRegistry()
	return &Page{Handler: promhttp.HandlerFor(r, promhttp.HandlerOpts{}), registry: r, counters: map[string]*prometheus.CounterVec{}, histograms: map[string]*prometheus.HistogramVec{},
		gauges: map[string]*prometheus.GaugeVec{}}
}

// Take implements metric.Sink.
func (p *Page) Take(e metric.Event) []slog.Attr {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range e.Sets {
		var by, value []string
		if s.By != "" {
			by, value = []string{s.By}, []string{s.Value}
		}
		for _, f := range s.Figures {
			name := "agentplatform_" + strings.ReplaceAll(f.Name, ".", "_")
			switch f.Unit {
			case metric.Milliseconds:
				p.histogram(name+"_seconds", by).WithLabelValues(value...).Observe(f.Value / 1000)
			case metric.Seconds:
				p.gauge(name+"_seconds", by).WithLabelValues(value...).Set(f.Value)
			default:
				if f.Value >= 0 {
					p.counter(name+"_total", by).WithLabelValues(value...).Add(f.Value)
				}
			}
		}
	}
	return nil
}

func (p *Page) counter(name string, by []string) *prometheus.CounterVec {
	c := p.counters[name]
	if c == nil {
		c = prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help(name)}, by)
		p.counters[name] = c
		p.registry.MustRegister(c)
	}
	return c
}

func (p *Page) histogram(name string, by []string) *prometheus.HistogramVec {
	h := p.histograms[name]
	if h == nil {
		h = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help(name), Buckets: buckets}, by)
		p.histograms[name] = h
		p.registry.MustRegister(h)
	}
	return h
}

func (p *Page) gauge(name string, by []string) *prometheus.GaugeVec {
	g := p.gauges[name]
	if g == nil {
		g = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help(name)}, by)
		p.gauges[name] = g
		p.registry.MustRegister(g)
	}
	return g
}

// buckets are seconds: a phase takes a millisecond or so by itself, and minutes with a slow tool.
var buckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 600}

func help(name string) string { return "See docs/operations.md: " + name }
