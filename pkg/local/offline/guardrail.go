package offline

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agentplatform/agentplatform/pkg/guardrail"
)

// Guardrails are those that are here, in version 1 and as DRAFT:
//
//	offline-personal-data   masks personal data
//	offline-secrets         blocks secrets, and masks phone numbers
//	offline-topics          denies the topic "pay": salary, salaries, wages
//	offline-throttled       refuses every request with ThrottlingException (429)
var Guardrails = map[string][]guardrail.Rule{
	"offline-personal-data": {{Action: guardrail.Mask, BuiltIn: personal}},
	"offline-secrets":       {{Action: guardrail.Block, BuiltIn: secrets}, {Action: guardrail.Mask, BuiltIn: []guardrail.BuiltIn{guardrail.Phone}}},
	"offline-topics":        {{Action: guardrail.Block, Topic: &guardrail.Topic{Name: "pay", Phrases: []string{"salary", "salaries", "wages"}}}},
	"offline-throttled":     nil,
}

var (
	personal = []guardrail.BuiltIn{guardrail.EMail, guardrail.Phone, guardrail.CreditCard, guardrail.IBAN, guardrail.USSSN, guardrail.IPAddress}
	secrets  = []guardrail.BuiltIn{guardrail.AWSAccessKey, guardrail.PrivateKey, guardrail.GitHubToken, guardrail.SlackToken, guardrail.StripeKey, guardrail.JWT, guardrail.Secret}
)

// entityTypes are Bedrock's names of what the platform's rules find. What has none there is found by a pattern of that name.
var entityTypes = map[string]string{"EMAIL": "EMAIL", "PHONE": "PHONE", "IP_ADDRESS": "IP_ADDRESS", "AWS_ACCESS_KEY": "AWS_ACCESS_KEY",
	"CREDIT_CARD": "CREDIT_DEBIT_CARD_NUMBER", "IBAN": "INTERNATIONAL_BANK_ACCOUNT_NUMBER", "US_SSN": "US_SOCIAL_SECURITY_NUMBER"}

const blockedMessage = "Sorry, the offline guardrail has blocked this."

// guardrailRoute takes /guardrail/{id}/version/{version}/apply apart; the id may be an ARN.
func guardrailRoute(r *http.Request) (id, version string, ok bool) {
	parts := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	if r.Method != http.MethodPost || len(parts) != 5 || parts[0] != "guardrail" || parts[2] != "version" || parts[4] != "apply" {
		return "", "", false
	}
	id, errID := url.PathUnescape(parts[1])
	version, errVersion := url.PathUnescape(parts[3])
	return id[strings.LastIndex(id, "/")+1:], version, errID == nil && errVersion == nil
}

// apply answers ApplyGuardrail.
func apply(w http.ResponseWriter, id, version string, body []byte) {
	rules, known := Guardrails[id]
	var req struct {
		Source  string `json:"source"`
		Content []struct {
			Text *struct {
				Text string `json:"text"`
			} `json:"text"`
		} `json:"content"`
	}
	switch err := json.Unmarshal(body, &req); {
	case err != nil:
		invalid("the request is not valid JSON of the expected shape: %v", err).write(w)
		return
	case !known || version != "1" && version != "DRAFT":
		refusal{http.StatusNotFound, "ResourceNotFoundException", "The guardrail identifier or version provided in the request does not exist."}.write(w)
		return
	case rules == nil:
		refusal{http.StatusTooManyRequests, "ThrottlingException", "Too many requests, please wait before trying again."}.write(w)
		return
	case req.Source != "INPUT" && req.Source != "OUTPUT":
		invalid("source must be INPUT or OUTPUT").write(w)
		return
	case len(req.Content) == 0:
		invalid("content must hold at least one block").write(w)
		return
	}
	var texts []string
	chars := 0
	for i, c := range req.Content {
		if c.Text == nil || c.Text.Text == "" {
			invalid("content.%d: the offline guardrails read text, of at least one character", i).write(w)
			return
		}
		texts = append(texts, c.Text.Text)
		chars += utf8.RuneCountInString(c.Text.Text)
	}
	if chars > 25_000 {
		invalid("the content is longer than 25 text units").write(w)
		return
	}
	answer, err := assess(rules, texts)
	if err != nil {
		refusal{http.StatusInternalServerError, "InternalServerException", "the guardrail's rules cannot be read"}.write(w)
		return
	}
	usage := map[string]int{"contextualGroundingPolicyUnits": 0}
	for _, policy := range []string{"topicPolicyUnits", "contentPolicyUnits", "wordPolicyUnits", "sensitiveInformationPolicyUnits", "sensitiveInformationPolicyFreeUnits"} {
		usage[policy] = (chars + 999) / 1000
	}
	answer["usage"] = usage
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// assess checks texts by rules, and says so as Bedrock does.
func assess(rules []guardrail.Rule, texts []string) (map[string]any, error) {
	said := slices.Clone(rules)
	for i := range said {
		said[i].Stages = guardrail.Stages
	}
	g := guardrail.Guardrail{ID: "offline", Rules: said}
	d, err := guardrail.Checker{}.Check(context.Background(), g, guardrail.Input, texts)
	if err != nil {
		return nil, err
	}
	answer := map[string]any{"action": "NONE", "actionReason": "No action.", "assessments": []any{map[string]any{}}, "outputs": []any{}}
	if d.Action == guardrail.Allow {
		return answer, nil
	}
	var entities, regexes, topics []any
	outputs := []any{}
	masked := make([]strings.Builder, len(texts))
	at := make([]int, len(texts))
	for i, s := range d.Spans {
		action := "ANONYMIZED"
		if d.Action == guardrail.Block && i == len(d.Spans)-1 {
			action = "BLOCKED"
		}
		found := map[string]any{"action": action, "detected": true, "match": texts[s.Text][s.Start:s.End]}
		mark := s.Kind
		switch typ, is := entityTypes[s.Kind]; {
		case is:
			found["type"], mark = typ, typ
			entities = append(entities, found)
		case s.Kind == "PAY":
			topics = append(topics, map[string]any{"name": "pay", "type": "DENY", "action": "BLOCKED", "detected": true})
		default:
			found["name"], found["regex"] = s.Kind, "."
			regexes = append(regexes, found)
		}
		masked[s.Text].WriteString(texts[s.Text][at[s.Text]:s.Start] + "{" + mark + "}")
		at[s.Text] = s.End
	}
	for i := range texts {
		masked[i].WriteString(texts[i][at[i]:])
		outputs = append(outputs, map[string]any{"text": masked[i].String()})
	}
	reason := "Guardrail masked."
	if d.Action == guardrail.Block {
		outputs, reason = []any{map[string]any{"text": blockedMessage}}, "Guardrail blocked."
	}
	assessment := map[string]any{}
	if len(entities)+len(regexes) > 0 {
		assessment["sensitiveInformationPolicy"] = map[string]any{"piiEntities": orEmpty(entities), "regexes": orEmpty(regexes)}
	}
	if len(topics) > 0 {
		assessment["topicPolicy"] = map[string]any{"topics": topics}
	}
	answer["action"], answer["actionReason"], answer["assessments"], answer["outputs"] = "GUARDRAIL_INTERVENED", reason, []any{assessment}, outputs
	return answer, nil
}

func orEmpty(list []any) []any {
	if list == nil {
		return []any{}
	}
	return list
}
