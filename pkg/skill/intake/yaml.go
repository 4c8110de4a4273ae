package intake

import (
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// parse reads the front matter as YAML that is data only. Nodes have the lines of SKILL.md.
func parse(front string) (*yaml.Node, error) {
	if err := checkFront(front); err != nil {
		return nil, err
	}
	document, err := decode(front)
	if err != nil {
		return nil, wrong(brokenLine(front, err), "the front matter is not YAML: %s", reason(err))
	}
	root := document.Content[0]
	if err := plain(root); err != nil {
		return nil, err
	}
	switch {
	case root.ShortTag() == "!!null":
		return nil, wrong(1, "the front matter is empty: it must have name and description")
	case root.Kind != yaml.MappingNode:
		return nil, wrong(root.Line, "the front matter must be fields: a name, a colon and a value on each line")
	}
	return root, nil
}

// decode parses without anything being made of aliases. The --- is put before it, for its lines to be those of the file.
func decode(front string) (document yaml.Node, err error) {
	err = yaml.NewDecoder(strings.NewReader("---\n" + front)).Decode(&document)
	return document, err
}

// plain refuses anchors, aliases and tags, anywhere.
func plain(n *yaml.Node) error {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return wrong(n.Line, "anchors and aliases (& and *) are not taken; put a text that begins so into quotes")
	case n.Style&yaml.TaggedStyle != 0:
		return wrong(n.Line, "tags (!) are not taken; put a text that begins so into quotes")
	}
	for _, child := range n.Content {
		if err := plain(child); err != nil {
			return err
		}
	}
	return nil
}

var atLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// brokenLine is the line that the parser stumbled at: the one after the longest beginning that is YAML, or the parser's, which is often where what is broken began.
func brokenLine(front string, err error) int {
	said := 1
	if found := atLine.FindStringSubmatch(err.Error()); found != nil {
		said, _ = strconv.Atoi(found[1]) // else 0: it does not say
	}
	lines := strings.SplitAfter(front, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	for whole := len(lines) - 1; whole > 0; whole-- {
		if _, err := decode(strings.Join(lines[:whole], "")); err == nil {
			return max(said, whole+2)
		}
	}
	return max(said, 2)
}

// reason is what the parser says, for people.
func reason(err error) string {
	said := err.Error()
	if found := atLine.FindStringSubmatch(said); found != nil {
		said = found[2]
	}
	switch {
	case strings.Contains(said, "mapping values are not allowed"):
		return said + " (a value with a colon in it belongs in quotes)"
	case strings.Contains(said, "cannot start any token"):
		return said + " (a value that begins so belongs in quotes)"
	case strings.Contains(said, "unknown anchor"):
		return "anchors and aliases (& and *) are not taken; put a text that begins so into quotes"
	}
	return said
}
