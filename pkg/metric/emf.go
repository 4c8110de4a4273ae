package metric

import (
	"log/slog"
	"time"
)

// EMF is CloudWatch's embedded metric format: a member of the line says which of its figures are metrics, and CloudWatch makes them as it stores the line. It needs a handler that writes
// lines as JSON, with an event's figures at the top.
//
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
type EMF struct{ Namespace string }

type emfMetadata struct {
	Timestamp         int64 // milliseconds
	CloudWatchMetrics []emfDirective
}

type emfDirective struct {
	Namespace  string
	Dimensions [][]string
	Metrics    []emfMetric
}

type emfMetric struct {
	Name string
	Unit Unit
}

// Take implements Sink.
func (m EMF) Take(e Event) []slog.Attr {
	about := emfMetadata{Timestamp: time.Now().UnixMilli()}
	for _, s := range e.Sets {
		if len(s.Figures) == 0 {
			continue
		}
		d := emfDirective{Namespace: m.Namespace, Dimensions: [][]string{{}}}
		if s.By != "" {
			d.Dimensions[0] = append(d.Dimensions[0], s.By)
		}
		for _, f := range s.Figures {
			d.Metrics = append(d.Metrics, emfMetric{f.Name, f.Unit})
		}
		about.CloudWatchMetrics = append(about.CloudWatchMetrics, d)
	}
	return []slog.Attr{slog.Any("_aws", about)}
}
