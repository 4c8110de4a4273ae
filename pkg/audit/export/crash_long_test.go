//go:build long

package export_test

import (
	"testing"

	"github.com/agentplatform/agentplatform/pkg/audit/export"
)

func TestKillAtEveryPointOfMoreParts(t *testing.T) {
	for _, format := range []export.Format{export.CSV, export.NDJSON} {
		t.Run(string(format), func(t *testing.T) { newWorld(t).killAtEveryPoint(format, 60) })
	}
}
