package expression

import (
	"testing"
	"time"
)

// BenchmarkNext is the next run of a schedule, in a zone whose clocks change; the floor is the conversion of one instant there and back.
func BenchmarkNext(b *testing.B) {
	after := time.Date(2027, 3, 1, 12, 34, 56, 0, time.UTC)
	for _, text := range []string{"rate(5 minutes)", "cron(0/5 8-17 ? * MON-FRI *)", "cron(30 2 L * ? *)", "cron(0 0 29 2 ? *)", "cron(0 9 ? * SUN#5 *)"} {
		times := parsed(b, text, "Europe/Berlin")
		b.Run(text, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, found := times.Next(after); !found {
					b.Fatal(text)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "next/s")
		})
	}
	zone := parsed(b, "rate(1 day)", "Europe/Berlin").Zone
	b.Run("floor", func(b *testing.B) {
		for b.Loop() {
			local := after.In(zone)
			_ = time.Date(local.Year(), local.Month(), local.Day(), local.Hour(), local.Minute(), 0, 0, zone)
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "next/s")
	})
}

// BenchmarkParse is what saving a schedule costs.
func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse("cron(0/5 8-17 ? * MON-FRI *)"); err != nil {
			b.Fatal(err)
		}
	}
}
