package main

import (
	"github.com/agentplatform/agentplatform/functions/budget"
	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/launch"
)

func main() { launch.Lambda("meter-usage", budget.MeterUsage, cloud.DB) }
