package secretsmanager_test

import (
	"testing"

	awssecrets "github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/cloud/secretsmanager"
)

func TestThePasswordOfTheKnowledgeBase(t *testing.T) {
	c := account(t)
	arn := create(t, c, "stage/database/knowledge", `{"username": "agentplatform_knowledge", "password": "`+long+`"}`)
	p := ports(t, map[string]string{"DATABASE_KNOWLEDGE_SECRET_ID": arn}, secretsmanager.Owner)
	require.Equal(t, long, p.KnowledgePassword())
	put := func(text string) {
		_, err := c.PutSecretValue(t.Context(), &awssecrets.PutSecretValueInput{SecretId: &arn, SecretString: &text})
		require.NoError(t, err)
	}
	put(`{"username": "agentplatform_knowledge", "password": "` + long + `next"}`)
	require.Equal(t, long+"next", p.KnowledgePassword(), "the value of now")

	for want, text := range map[string]string{
		`is not the JSON object of a role: username, password`:               `p-of-knowledge`,
		`has the username "owner", where it must be agentplatform_knowledge`: `{"username": "owner", "password": "p-of-knowledge` + long + `"}`,
		`has a password of fewer than 32 characters`:                         `{"username": "agentplatform_knowledge", "password": "p-of-knowledge"}`,
	} {
		put(text)
		require.Equal(t, "DATABASE_KNOWLEDGE_SECRET_ID: secret "+arn+" "+want, refusal(t, func() { p.KnowledgePassword() }))
	}
	p = ports(t, map[string]string{"DATABASE_KNOWLEDGE_SECRET_ID": ""}, secretsmanager.Owner)
	require.Empty(t, p.KnowledgePassword(), "there is no knowledge base")
}
