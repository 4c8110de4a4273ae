package handler

import "time"

// Anchoring is how anchors are made and where they can be followed.
type Anchoring struct {
	Interval   time.Duration // of cadences; default 15 minutes
	Retention  time.Duration // how long an object of the write-once bucket is locked; default 400 days
	Origin     string        // names the anchor log in its checkpoints; required
	WitnessURL string        // of a C2SP tlog-witness; empty: none
	WitnessKey string        // its verifier key
}
