package main

import (
	"github.com/agentplatform/agentplatform/functions/mail"
	"github.com/agentplatform/agentplatform/pkg/cloud/ses"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() {
	launch.Lambda("send-mail", mail.SendMail, ses.Mail)
}
