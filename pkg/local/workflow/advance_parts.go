package workflow

import (
	"github.com/agentplatform/agentplatform/pkg/workflow"
	"github.com/agentplatform/agentplatform/pkg/workflow/asl"
)

// widest is how many items of a Map are under way at once: as many as in Step Functions.
const widest = 40

// gather is called when a branch of it has ended: all have, or others may begin.
func (m *move) gather(outputs []any) {
	c, input, f := m.read()
	switch s := m.at(); {
	case f != nil:
		m.fails(*f)
	case m.size > workflow.MaxData:
		m.fails(*tooLarge())
	case m.ended == m.total:
		m.exit(outputs)
	case s.Type == asl.Map:
		m.part(s, input, c)
	}
}

func (m *move) split(total int) {
	m.phase, m.fresh, m.total, m.made, m.ended, m.size = parted, true, total, 0, 0, 0
}

// part has branches begin, as many as may.
func (m *move) part(s *asl.State, input any, c asl.Context) {
	if s.Type == asl.Parallel {
		v, f := made(input)
		if f != nil {
			m.fails(*f)
			return
		}
		for _, b := range s.Branches {
			m.children = append(m.children, child{b.StartAt, v, m.item})
		}
		m.made = m.total
		return
	}
	width, f := s.Concurrency(input, c)
	items, f2 := s.Items(input, c)
	if f == nil {
		f = f2
	}
	if width == 0 {
		width = widest
	}
	for under := m.made - m.ended; f == nil && under < min(width, widest) && m.made < m.total; under++ {
		one := &item{m.made, items[m.made]}
		var data any
		if data, f = s.Item(input, one.Index, one.Value, c); f != nil {
			break
		}
		var v value
		if v, f = made(data); f == nil {
			m.children = append(m.children, child{s.Processor.StartAt, v, one})
			m.made++
		}
	}
	if f != nil {
		m.fails(*f)
	}
}
