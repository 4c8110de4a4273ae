package appsync_test

import (
	"context"
	"net/http/httptest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/cloud/bedrock"
	"github.com/agentplatform/agentplatform/pkg/evaluation"
	"github.com/agentplatform/agentplatform/pkg/evaluator/grade"
	"github.com/agentplatform/agentplatform/pkg/local/offline"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// runs takes the turn that was saved under that name as far as it comes, with the offline model.
func runs(name string) func(*side) {
	return func(s *side) {
		s.t.Helper()
		client, stop := s.model()
		defer stop()
		require.NoError(s.t, s.runner(client).Run(s.t.Context(), turn.Dispatch{TenantID: s.acme.TenantID, TurnID: s.known[name]}))
	}
}

// evaluates takes the run that was saved under that name to its end: each case's turn runs when it is dispatched, and is rated.
func evaluates(name string) func(*side) {
	return func(s *side) {
		s.t.Helper()
		client, stop := s.model()
		defer stop()
		turns := s.runner(client)
		worker := &evaluation.Runner{DB: s.DB.App, Grader: grade.New(client), Publish: s, Watch: time.Millisecond,
			Dispatch: func(ctx context.Context, tenantID, turnID string) error {
				return turns.Run(ctx, turn.Dispatch{TenantID: tenantID, TurnID: turnID})
			}}
		require.NoError(s.t, worker.Run(s.t.Context(), evaluation.Job{TenantID: s.acme.TenantID, RunID: s.known[name]}))
	}
}

// model is the offline model, until stop.
func (s *side) model() (client *bedrock.Client, stop func()) {
	s.t.Helper()
	server := httptest.NewServer(offline.New(offline.Config{}))
	client, err := bedrock.New(bedrock.Config{Region: "us-east-1", Endpoint: server.URL})
	require.NoError(s.t, err)
	return client, func() {
		client.Close()
		server.Close()
	}
}

func (s *side) runner(m model.Model) *turn.Runner {
	return turn.NewRunner(s.DB.App, m, s, func(context.Context, string, string) error { return nil })
}
