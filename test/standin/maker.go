package standin

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// maker makes the resources that a CloudFormation template asks for, by their type.
var maker = map[string]func(a *AWS, region string, properties map[string]any) (made, error){
	"AWS::SecretsManager::Secret": makeSecret,
	"AWS::BedrockAgentCore::Runtime": func(_ *AWS, region string, p map[string]any) (made, error) {
		return makeCore(region, "runtime", fmt.Sprint(p["AgentRuntimeName"]), "AgentRuntime", "1"), nil
	},
	"AWS::BedrockAgentCore::CodeInterpreterCustom": func(_ *AWS, region string, p map[string]any) (made, error) {
		return makeCore(region, "code-interpreter-custom", fmt.Sprint(p["Name"]), "CodeInterpreter", ""), nil
	},
	"AWS::BedrockAgentCore::Memory": func(_ *AWS, region string, p map[string]any) (made, error) {
		return makeCore(region, "memory", fmt.Sprint(p["Name"]), "Memory", ""), nil
	},
}

// makeSecret makes a secret at moto, with a value that nobody has seen.
func makeSecret(a *AWS, region string, p map[string]any) (made, error) {
	generate, _ := p["GenerateSecretString"].(map[string]any)
	length, err := strconv.Atoi(fmt.Sprint(generate["PasswordLength"]))
	if err != nil {
		return made{}, fmt.Errorf("GenerateSecretString.PasswordLength: %w", err)
	}
	var value strings.Builder
	for value.Len() < length {
		value.WriteString(rand.Text())
	}
	text := value.String()[:length]
	if name, ok := generate["GenerateStringKey"].(string); ok { // a member of an object
		var whole object
		if err := json.Unmarshal([]byte(fmt.Sprint(generate["SecretStringTemplate"])), &whole); err != nil {
			return made{}, fmt.Errorf("GenerateSecretString.SecretStringTemplate: %w", err)
		}
		whole[name] = text
		all, err := json.Marshal(whole)
		if err != nil {
			return made{}, err
		}
		text = string(all)
	}
	var secret struct{ ARN string }
	if err := a.ask(region, "secretsmanager.CreateSecret", object{"Name": p["Name"], "Description": p["Description"], "KmsKeyId": p["KmsKeyId"], "SecretString": text,
		"ClientRequestToken": rand.Text() + rand.Text()}, &secret); err != nil {
		return made{}, err
	}
	return made{ref: secret.ARN, attributes: map[string]string{"Id": secret.ARN}, remove: func() error {
		return a.ask(region, "secretsmanager.DeleteSecret", object{"SecretId": secret.ARN, "ForceDeleteWithoutRecovery": true}, nil)
	}}, nil
}

// makeCore makes something of Bedrock AgentCore: a name with what AgentCore puts behind it, and nothing else.
func makeCore(region, kind, name, prefix, version string) made {
	id := name + "-" + rand.Text()[:10]
	arn := "arn:aws:bedrock-agentcore:" + region + ":" + Account + ":" + kind + "/" + id
	return made{ref: arn, attributes: map[string]string{prefix + "Id": id, prefix + "Arn": arn, prefix + "Version": version}, remove: func() error { return nil }}
}

// ask asks moto itself, in JSON.
func (a *AWS) ask(region, target string, question, answer any) error {
	text, err := json.Marshal(question)
	if err != nil {
		return err
	}
	r, err := http.NewRequest(http.MethodPost, a.moto.URL, bytes.NewReader(text))
	if err != nil {
		return err
	}
	service, _, _ := strings.Cut(target, ".")
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	r.Header.Set("X-Amz-Target", target)
	return do(r, service, region, answer)
}

// do sends moto a request for a service in a region.
func do(r *http.Request, service, region string, answer any) error {
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=none/20260101/"+region+"/"+service+"/aws4_request, SignedHeaders=host, Signature=none")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	said, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return err
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %s: %s", service, response.Status, said)
	case answer == nil:
		return nil
	}
	return json.Unmarshal(said, answer)
}
