package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"github.com/agentplatform/agentplatform/pkg/local"
)

// client talks to the platform over its public API, as anybody would.
type client struct {
	out   local.Outputs
	token string
}

// signIn gets an ID token by USER_PASSWORD_AUTH.
func signIn(ctx context.Context, out local.Outputs, email, password string) (*client, error) {
	body, err := json.Marshal(map[string]any{"AuthFlow": "USER_PASSWORD_AUTH", "ClientId": out.ClientID,
		"AuthParameters": map[string]string{"USERNAME": email, "PASSWORD": password}})
	if err != nil {
		return nil, err
	}
	var answer struct {
		AuthenticationResult struct{ IdToken string }
	}
	c := &client{out: out}
	err = c.post(ctx, out.APIURL+"/", map[string]string{"Content-Type": "application/x-amz-json-1.1",
		"X-Amz-Target": "AWSCognitoIdentityProviderService.InitiateAuth"}, body, &answer)
	c.token = answer.AuthenticationResult.IdToken
	return c, err
}

// query sends a GraphQL request and reads its data.
func (c *client) query(ctx context.Context, query string, variables map[string]any, data any) error {
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		return err
	}
	var answer struct {
		Data   json.RawMessage
		Errors []struct{ Message string }
	}
	if err := c.post(ctx, c.out.APIURL+"/graphql", map[string]string{"Content-Type": "application/json", "Authorization": "Bearer " + c.token}, body, &answer); err != nil {
		return err
	}
	if len(answer.Errors) > 0 {
		return errors.New(answer.Errors[0].Message)
	}
	return json.Unmarshal(answer.Data, data)
}

func (c *client) post(ctx context.Context, url string, header map[string]string, body []byte, answer any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", res.Status, raw)
	}
	return json.Unmarshal(raw, answer)
}

// frame is a message of the AppSync real-time protocol.
type frame struct {
	ID      string          `json:"id,omitempty"`
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// subscribe opens the real-time socket over TLS and returns once the subscription has started.
func (c *client) subscribe(ctx context.Context, query string, variables map[string]any) (*websocket.Conn, error) {
	ca, err := os.ReadFile(c.out.CAFile)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	auth, err := json.Marshal(map[string]string{"Authorization": c.token, "host": c.out.RealtimeURL})
	if err != nil {
		return nil, err
	}
	conn, _, err := websocket.Dial(ctx, c.out.RealtimeURL+"/graphql", &websocket.DialOptions{
		HTTPClient:   &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}},
		Subprotocols: []string{"graphql-ws", "header-" + base64.RawURLEncoding.EncodeToString(auth)}})
	if err != nil {
		return nil, err
	}
	request, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		return nil, err
	}
	start, err := json.Marshal(map[string]any{"data": string(request), "extensions": map[string]any{"authorization": json.RawMessage(auth)}})
	if err != nil {
		return nil, err
	}
	if err := wsjson.Write(ctx, conn, frame{Type: "connection_init"}); err != nil {
		return nil, err
	}
	if err := await(ctx, conn, "connection_ack"); err != nil {
		return nil, err
	}
	if err := wsjson.Write(ctx, conn, frame{ID: "1", Type: "start", Payload: start}); err != nil {
		return nil, err
	}
	return conn, await(ctx, conn, "start_ack")
}

func await(ctx context.Context, conn *websocket.Conn, kind string) error {
	for {
		var f frame
		if err := wsjson.Read(ctx, conn, &f); err != nil {
			return err
		}
		switch f.Type {
		case kind:
			return nil
		case "error", "connection_error":
			return fmt.Errorf("subscription: %s", f.Payload)
		}
	}
}
