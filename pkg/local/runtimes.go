package local

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agentplatform/agentplatform/pkg/agentcore"
	"github.com/agentplatform/agentplatform/pkg/local/realtime"
	"github.com/agentplatform/agentplatform/pkg/publish"
)

// runtimes are agent runtimes on this machine. Such a one reaches no subscribers itself: what it tells of a turn is published here.
func (p *Platform) runtimes(hub *realtime.Hub) agentcore.Runtimes {
	all := agentcore.Runtimes{}
	for selector, target := range p.config.Runtimes {
		all[selector] = agentcore.HTTP{URL: target.URL, Wait: time.Minute, Relay: func(event []byte) {
			e, err := publish.Decode(event)
			if err == nil {
				err = hub.Publish(context.Background(), e)
			}
			if err != nil {
				slog.Warn("an event of the runtime was not published", "runtime", selector, "error", err)
			}
		}}
	}
	return all
}

// checkRuntimes refuses what cannot be reached from here.
func checkRuntimes(targets map[string]agentcore.Target) error {
	for selector, target := range targets {
		if target.URL == "" {
			return fmt.Errorf("AGENT_RUNTIMES: %s is at AWS, which cannot reach this machine's database; give the URL of a runtime on this machine", selector)
		}
	}
	return nil
}

// writeRuntimeEnv writes runtime.env, mode 0600: the environment of a runtime on this machine, for a shell to source and for a container
// engine's --env-file alike.
func (p *Platform) writeRuntimeEnv() error {
	if len(p.config.Runtimes) == 0 {
		return nil
	}
	endpoint := p.config.BedrockEndpoint
	if p.model.offline != nil {
		endpoint = p.model.offline.url("http")
	}
	settings := [][2]string{{"DATABASE_URL", p.database.appURL}, {"DATABASE_MAX_CONNS", "4"}, {"APPSYNC_URL", "none"}, {"FUNCTION_PREFIX", "none"}, {"AWS_REGION", region}}
	key, secret := "local", "local"
	if p.host != nil { // a runtime then reaches subscribers and functions itself, as in AWS: dispatch-turn does not follow what it tells
		settings = append(slices.DeleteFunc(settings, func(v [2]string) bool { return v[1] == "none" }), [2]string{"APPSYNC_URL", p.aws.url("http")},
			[2]string{"FUNCTION_PREFIX", functionPrefix}, [2]string{"AWS_ENDPOINT_URL", p.aws.url("http")}, [2]string{"CODE_INTERPRETER_ID", interpreterID},
			[2]string{"MAIL_FROM", mailFrom})
		key, secret = accessKey, p.secrets.get("S3_ROOT_SECRET")
	}
	if endpoint != "" {
		settings = append(settings, [2]string{"AWS_ENDPOINT_URL_BEDROCK_RUNTIME", endpoint}, [2]string{"AWS_ACCESS_KEY_ID", key}, [2]string{"AWS_SECRET_ACCESS_KEY", secret})
	}
	var text bytes.Buffer
	for _, v := range settings {
		if strings.ContainsAny(v[1], "'\r\n ") {
			return fmt.Errorf("runtime.env: %s holds what no line of it can", v[0])
		}
		fmt.Fprintf(&text, "%s=%s\n", v[0], v[1])
	}
	name := filepath.Join(p.config.Dir, "runtime.env")
	if err := os.WriteFile(name+".part", text.Bytes(), 0o600); err != nil {
		return err
	}
	return os.Rename(name+".part", name) // whoever waits for it finds all of it
}
