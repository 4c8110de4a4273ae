package standin

import (
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// template is what is read of a CloudFormation template; JSON is YAML too.
type template struct {
	Parameters map[string]any `yaml:"Parameters"`
	Resources  map[string]struct {
		Type       string    `yaml:"Type"`
		Properties yaml.Node `yaml:"Properties"`
	} `yaml:"Resources"`
	Outputs map[string]struct {
		Value yaml.Node `yaml:"Value"`
	} `yaml:"Outputs"`
}

func parseTemplate(text string) (t template, err error) {
	return t, yaml.Unmarshal([]byte(text), &t)
}

// evaluation resolves what stands in a template for something else: Ref, Fn::GetAtt and Fn::Sub, in both their forms.
type evaluation struct {
	given     map[string]string
	resources map[string]made
}

func (e evaluation) value(n yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.ScalarNode:
		switch n.Tag {
		case "!Ref":
			return e.ref(n.Value)
		case "!Sub":
			return e.sub(n.Value)
		case "!GetAtt":
			resource, attribute, _ := strings.Cut(n.Value, ".")
			return e.attribute(resource, attribute)
		}
		return n.Value, nil
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			var err error
			if list[i], err = e.value(*item); err != nil {
				return nil, err
			}
		}
		return list, nil
	case yaml.MappingNode:
		return e.mapping(n)
	}
	return nil, nil
}

func (e evaluation) mapping(n yaml.Node) (any, error) {
	all := map[string]any{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i].Value
		value, err := e.value(*n.Content[i+1])
		if err != nil {
			return nil, err
		}
		switch text, _ := value.(string); name {
		case "Ref":
			return e.ref(text)
		case "Fn::Sub":
			return e.sub(text)
		case "Fn::GetAtt":
			if path, ok := value.([]any); ok && len(path) == 2 {
				return e.attribute(fmt.Sprint(path[0]), fmt.Sprint(path[1]))
			}
		}
		if strings.HasPrefix(name, "Fn::") {
			return nil, fmt.Errorf("the stand-in knows no %s of that form", name)
		}
		all[name] = value
	}
	return all, nil
}

func (e evaluation) ref(name string) (string, error) {
	if value, ok := e.given[name]; ok {
		return value, nil
	}
	if r, ok := e.resources[name]; ok {
		return r.ref, nil
	}
	return "", fmt.Errorf("unresolved: %s", name)
}

func (e evaluation) attribute(resource, name string) (string, error) {
	if value, ok := e.resources[resource].attributes[name]; ok {
		return value, nil
	}
	return "", fmt.Errorf("unresolved: %s.%s", resource, name)
}

var placeholder = regexp.MustCompile(`\$\{([^}]+)\}`)

func (e evaluation) sub(text string) (done string, err error) {
	done = placeholder.ReplaceAllStringFunc(text, func(found string) string {
		value, unresolved := e.ref(found[2 : len(found)-1])
		if unresolved != nil {
			err = unresolved
		}
		return value
	})
	return done, err
}
