// Package schedule answers the API's fields of schedules and the state machine of the scheduled flow, and checks what the clock holds.
package schedule
