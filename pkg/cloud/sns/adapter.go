package sns

import (
	"fmt"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/sns"

	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/push"
)

// Push is the adapter for the needs push:send and push:devices. Without platform applications it serves no platform: nobody can register a device.
func Push(a *cloud.Account, p *handler.Ports) {
	p.Push = sync.OnceValue(func() *push.Pusher {
		return push.New(Carrier{Client: sns.NewFromConfig(a.AWS()), Applications: cloud.Must(applications(a.PushApplications))})
	})
}

// applications reads PUSH_APPLICATIONS: platform=ARN, comma-separated.
func applications(setting string) (map[push.Platform]string, error) {
	all := map[push.Platform]string{}
	for pair := range strings.SplitSeq(setting, ",") {
		if pair == "" {
			continue
		}
		platform, arn, _ := strings.Cut(pair, "=")
		if _, known := keys[push.Platform(platform)]; !known || !strings.Contains(arn, ":app/"+keys[push.Platform(platform)]+"/") {
			return nil, fmt.Errorf("PUSH_APPLICATIONS: %q is not a platform (apns, apns-sandbox, fcm), = and the ARN of its platform application", pair)
		}
		all[push.Platform(platform)] = arn
	}
	return all, nil
}
