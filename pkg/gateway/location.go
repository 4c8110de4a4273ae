package gateway

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// lines is where a query's lines begin, made when its first error is. The parser counts in runes, graphql-js in UTF-16 units.
type lines struct {
	starts []int // rune offsets of the lines
	wide   []int // rune offsets of the runes that are two units
}

func newLines(query string) lines {
	l := lines{starts: []int{0}}
	at := 0
	for i, r := range query {
		at++
		switch {
		case r == '\n' || r == '\r' && (i+1 == len(query) || query[i+1] != '\n'): // \r\n is one end of line
			l.starts = append(l.starts, at)
		case r > 0xFFFF:
			l.wide = append(l.wide, at-1)
		}
	}
	return l
}

// location is a place of the query as graphql-js counts it.
func (d *document) location(at *ast.Position) Location {
	d.linesOnce.Do(func() { d.lines = newLines(d.query) })
	line, exact := slices.BinarySearch(d.lines.starts, at.Start)
	if !exact {
		line--
	}
	start := d.lines.starts[line]
	from, _ := slices.BinarySearch(d.lines.wide, start)
	to, _ := slices.BinarySearch(d.lines.wide, at.Start)
	return Location{Line: line + 1, Column: at.Start - start + to - from + 1}
}
