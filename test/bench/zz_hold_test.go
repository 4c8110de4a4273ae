package bench

import (
	"encoding/json"
	"os"
	"testing"
	"time"
)

func TestHold(t *testing.T) {
	if os.Getenv("VB_HOLD") == "" {
		return
	}
	l := &auditLog{}
	defer l.close()
	if err := l.build(); err != nil {
		t.Fatal(err)
	}
	b, _ := json.Marshal(map[string]any{"Verify": verifyOrder{Endpoint: l.endpoint, Database: l.url("reader"), Key: l.public, Now: l.now}})
	os.WriteFile("/tmp/vt/order.json", b, 0o644)
	os.WriteFile("/tmp/vt/super", []byte(l.server.URL("postgres", "bench", "log")), 0o644)
	for {
		if _, err := os.Stat("/tmp/vt/stop"); err == nil {
			os.Remove("/tmp/vt/stop")
			return
		}
		time.Sleep(500 * time.Millisecond)
	}
}
