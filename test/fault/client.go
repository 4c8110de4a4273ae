package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// web keeps no connection: platforms come and go.
var web = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: waitTime}

// user is somebody who has signed in. The token stays good over restarts.
type user struct {
	api   string
	token string
}

// vars are a query's variables.
type vars = map[string]any

// signIn signs in over the Cognito wire API.
func (m *machine) signIn(ctx context.Context, email string) (*user, error) {
	var answer struct {
		AuthenticationResult struct{ IdToken string }
	}
	u := &user{api: m.up.Outputs.APIURL}
	_, err := u.post(ctx, "/", vars{"AuthFlow": "USER_PASSWORD_AUTH", "ClientId": m.up.Outputs.ClientID,
		"AuthParameters": vars{"USERNAME": email, "PASSWORD": m.up.Password}}, &answer,
		"Content-Type", "application/x-amz-json-1.1", "X-Amz-Target", "AWSCognitoIdentityProviderService.InitiateAuth")
	if u.token = answer.AuthenticationResult.IdToken; err == nil && u.token == "" {
		err = fmt.Errorf("%s could not sign in", email)
	}
	return u, err
}

// refused is an error that the platform has told; any other one may mean that it is down.
type refused struct{ message string }

func (r refused) Error() string { return r.message }

// query asks GraphQL and reads its data.
func (u *user) query(ctx context.Context, query string, v vars, data any) error {
	var answer struct {
		Data   json.RawMessage
		Errors []struct{ Message, ErrorType string }
	}
	_, err := u.post(ctx, "/graphql", vars{"query": query, "variables": v}, &answer, "Content-Type", "application/json", "Authorization", u.token)
	switch {
	case err != nil:
		return err
	case len(answer.Errors) > 0 && answer.Errors[0].ErrorType == "InternalError": // its database died with it
		return errors.New(answer.Errors[0].Message)
	case len(answer.Errors) > 0:
		return refused{answer.Errors[0].ErrorType + ": " + answer.Errors[0].Message}
	}
	return json.Unmarshal(answer.Data, data)
}

// again asks until it is answered: over restarts.
func (u *user) again(ctx context.Context, query string, v vars, data any) error {
	for {
		err := u.query(ctx, query, v, data)
		if err == nil || errors.As(err, new(refused)) {
			return err
		}
		if ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		pause(ctx, 50*time.Millisecond)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func (u *user) post(ctx context.Context, path string, body, answer any, header ...string) (status int, err error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, u.api+path, bytes.NewReader(raw))
	if err != nil {
		return 0, err
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := web.Do(r)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if raw, err = io.ReadAll(res.Body); err != nil {
		return 0, err
	}
	if err := json.Unmarshal(raw, answer); err != nil {
		return res.StatusCode, fmt.Errorf("%s: %.200s", res.Status, raw)
	}
	return res.StatusCode, nil
}

// sent is what sendMessage answers.
type sent struct{ ID, TurnID string }

// send sends a message; a repeat with the same key sends nothing.
func (u *user) send(ctx context.Context, thread, body, key string) (sent, error) {
	var answer struct{ SendMessage sent }
	err := u.query(ctx, sendDocument, vars{"input": vars{"threadId": thread, "body": body, "clientToken": key}}, &answer)
	return answer.SendMessage, err
}

const sendDocument = `mutation ($input: SendMessageInput!) { sendMessage(input: $input) { id turnId } }`

// turn is a turn's record.
type turn struct {
	ID, Status, WaitsFor  string
	Attempts              int
	Error, CostUSD        *string
	StartedAt, FinishedAt *time.Time
	ToolOutcomes          []outcome
	Approvals             []struct{ ToolCallID, Status string }
}

// outcome is what came of a call of a tool.
type outcome struct {
	Name, Status string
	Error        *string
}

func (t turn) over() bool {
	return t.Status != "queued" && t.Status != "running" && t.Status != "waiting"
}

const turnFields = `id status waitsFor attempts error costUsd startedAt finishedAt toolOutcomes { name status error } approvals { toolCallId status }`

// until waits until a turn is as it is wanted; over restarts.
func (u *user) until(ctx context.Context, id string, wanted func(turn) bool) (turn, error) {
	ctx, cancel := context.WithTimeout(ctx, waitTime)
	defer cancel()
	for {
		var answer struct{ Turn turn }
		if err := u.again(ctx, `query ($id: ID!) { turn(id: $id) { `+turnFields+` } }`, vars{"id": id}, &answer); err != nil {
			return answer.Turn, fmt.Errorf("turn %s: %w", id, err)
		}
		if wanted(answer.Turn) {
			return answer.Turn, nil
		}
		pause(ctx, 30*time.Millisecond)
	}
}
