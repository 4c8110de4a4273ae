package agent

import "encoding/json"

// Source is whose a setting is.
type Source string

const (
	FromAgent    Source = "agent"
	FromTemplate Source = "template"
)

// Setting is a field that a template may give: what an agent's turns go by, and whose that is.
type Setting struct {
	Field string  `json:"field"`
	From  Source  `json:"from"`
	Value *string `json:"value"` // JSON; nil: neither gives any
}

// Settings are what a's turns go by, of the template t that it has.
func Settings(a Agent, t Template) ([]Setting, error) {
	own, given := a.settings().named(), t.settings().named()
	all := make([]Setting, len(own))
	for i, mine := range own {
		all[i] = Setting{Field: mine.field, From: FromAgent}
		value := mine.value
		if value == nil {
			all[i].From, value = FromTemplate, given[i].value
		}
		if value == nil {
			continue
		}
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		all[i].Value = new(string(raw))
	}
	return all, nil
}

// named is a field as the API calls it, with its value; nil: none.
type named struct {
	field string
	value any
}

// named are the settings in the order in which they are shown.
func (s settings) named() []named {
	return []named{
		name("modelId", *s.modelID), name("runtime", *s.runtime), name("systemPrompt", *s.systemPrompt), name("tools", *s.tools),
		name("toolApprovals", *s.toolApprovals), name("guardrailId", *s.guardrailID), name("skillPackIds", *s.skillPackIDs),
		name("knowledgeBaseId", *s.knowledgeBaseID), name("evaluators", *s.evaluators), name("fetchHosts", *s.fetchHosts),
	}
}

func name[T any](field string, value *T) named {
	if value == nil {
		return named{field, nil}
	}
	return named{field, *value}
}
