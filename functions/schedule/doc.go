// Package schedule answers the state machine of the scheduled flow.
package schedule
