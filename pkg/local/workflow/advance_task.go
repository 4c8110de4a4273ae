package workflow

import (
	"time"

	"github.com/agentplatform/agentplatform/pkg/workflow/asl"
)

// task is an attempt at a Task: a call that is to be made.
func (m *move) task(s *asl.State, input any, c asl.Context) {
	timeout, pulse, f := s.Deadline(m.input.data, c)
	if f == nil {
		m.call, f = m.scene.call(s.Resource, input)
	}
	if f != nil {
		m.fails(*f)
		return
	}
	m.phase, m.deadline, m.beat, m.pulse = calling, time.Time{}, time.Time{}, 0
	if timeout > 0 {
		m.deadline = m.now.Add(timeout)
	}
	if pulse > 0 && m.call.token {
		m.pulse, m.beat = pulse, m.now.Add(pulse)
	}
}

// again is a task that waits for its token, or its end, if that has come; or a call that was cut short: it is made again, with all of its time, for nobody
// has worked on it since.
func (m *move) again() {
	switch {
	case m.phase != holding:
		c, input, f := m.read()
		if f != nil {
			m.fails(*f)
			return
		}
		m.task(m.at(), input, c)
	case !m.deadline.IsZero() && !m.now.Before(m.deadline):
		m.fails(asl.Failure{Error: asl.ErrorTimeout})
	case !m.beat.IsZero() && !m.now.Before(m.beat):
		m.fails(asl.Failure{Error: asl.ErrorHeartbeatTimeout})
	default:
		m.wake = earlier(m.deadline, m.beat)
	}
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
