package intake

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/agentplatform/agentplatform/pkg/skill/pack"
)

const (
	maxName          = 64 // characters, as all of these
	maxDescription   = 1024
	maxCompatibility = 500
	known            = "name, description, license, compatibility, metadata and allowed-tools"
)

// readFields reads the fields of the front matter.
func readFields(root *yaml.Node, folder string, p *pack.Pack) error {
	first := map[string]int{}
	for i := 0; i < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			return wrong(key.Line, "a field's name must be a word; a value in braces belongs in quotes")
		}
		if line, twice := first[key.Value]; twice {
			return wrong(key.Line, "%s is given twice, first on line %d", shown(key.Value), line)
		}
		first[key.Value] = key.Line
		if err := readField(key, value, p); err != nil {
			return err
		}
	}
	for _, required := range []string{"name", "description"} {
		if first[required] == 0 {
			return wrong(1, "the front matter has no %s, which is required", required)
		}
	}
	if folder != "" && folder != p.Name {
		return wrong(first["name"], "name is %s, and the folder is %s; they must be the same", p.Name, shown(folder))
	}
	return nil
}

func readField(key, value *yaml.Node, p *pack.Pack) (err error) {
	switch key.Value {
	case "name":
		if p.Name, err = words("name", key, value, maxFront); err == nil {
			err = checkSkillName(p.Name, value.Line)
		}
	case "description":
		p.Description, err = words("description", key, value, maxDescription)
	case "license":
		p.License, err = words("license", key, value, maxFront)
	case "compatibility":
		p.Compatibility, err = words("compatibility", key, value, maxCompatibility)
	case "metadata":
		p.Metadata, err = metadata(key, value)
	case "allowed-tools":
		p.AllowedTools, err = allowedTools(key, value)
	default:
		err = wrong(key.Line, "%s is no field of a skill: there are %s; what is your own belongs in metadata", shown(key.Value), known)
	}
	return err
}

var skillName = regexp.MustCompile(`^[a-z0-9]+(?:-[a-z0-9]+)*$`)

func checkSkillName(name string, line int) error {
	switch {
	case utf8.RuneCountInString(name) > maxName:
		return wrong(line, "name has %d characters; at most %d", utf8.RuneCountInString(name), maxName)
	case !skillName.MatchString(name):
		return wrong(line, "name is %s; it must be of a-z, 0-9 and -, with no - at an end and no two in a row", shown(name))
	}
	return nil
}

// words is a value that is one text, of 1 to most characters.
func words(field string, key, value *yaml.Node, most int) (string, error) {
	if value.Kind != yaml.ScalarNode {
		return "", wrong(value.Line, "%s must be a text, and is a list or fields; a value that begins with [ or { belongs in quotes", field)
	}
	text := strings.TrimSpace(value.Value)
	characters := utf8.RuneCountInString(text)
	switch {
	case text == "" || value.ShortTag() == "!!null":
		return "", wrong(key.Line, "%s is empty", field)
	case characters > most:
		return "", wrong(value.Line, "%s has %d characters; at most %d", field, characters, most)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, func(c rune) bool { return unicode.IsControl(c) && c != '\n' && c != '\t' }):
		return "", wrong(value.Line, "%s has a control character", field)
	}
	return text, nil
}

func metadata(key, value *yaml.Node) (map[string]string, error) {
	if value.Kind != yaml.MappingNode {
		return nil, wrong(key.Line, "metadata must be fields of their own, each on a line below it")
	}
	all, first := map[string]string{}, map[string]int{}
	for i := 0; i < len(value.Content); i += 2 {
		name, err := words("a name in metadata", value.Content[i], value.Content[i], maxFront)
		if err != nil {
			return nil, err
		}
		if line, twice := first[name]; twice {
			return nil, wrong(value.Content[i].Line, "%s is in metadata twice, first on line %d", shown(name), line)
		}
		first[name] = value.Content[i].Line
		if all[name], err = words(shown("metadata."+name), value.Content[i], value.Content[i+1], maxFront); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func allowedTools(key, value *yaml.Node) (tools []string, err error) {
	if value.Kind != yaml.SequenceNode {
		list, err := words("allowed-tools", key, value, maxFront)
		if err != nil {
			return nil, err
		}
		return between(list, value.Line)
	}
	for _, item := range value.Content {
		tool, err := words("allowed-tools", item, item, maxFront)
		if err != nil {
			return nil, err
		}
		tools = append(tools, tool)
	}
	if len(tools) == 0 {
		return nil, wrong(key.Line, "allowed-tools is empty")
	}
	return tools, nil
}

// between splits a list of tools at its spaces, but not at those in parentheses, as in Bash(git add:*).
func between(list string, line int) (tools []string, err error) {
	depth, tool := 0, ""
	for word := range strings.FieldsSeq(list) {
		if depth > 0 {
			tool += " "
		}
		tool += word
		if depth += strings.Count(word, "(") - strings.Count(word, ")"); depth > 0 {
			continue
		}
		if strings.HasSuffix(tool, ",") {
			return nil, wrong(line, "allowed-tools are separated by spaces, not by commas: %s", shown(tool))
		}
		tools, tool = append(tools, tool), ""
	}
	if depth != 0 {
		return nil, wrong(line, "allowed-tools has a parenthesis without its other one")
	}
	return tools, nil
}
