package appsync

import "github.com/agentplatform/agentplatform/pkg/publish"

// mutations are the documents that events are published with. They select every field of every event, because AppSync gives subscribers
// (and their filters) only what the publisher selected, under the SDL's own names (hence no aliases); a test holds them against the SDL.
var mutations = map[publish.Topic]string{
	publish.ThreadEvents: `mutation Publish($event: AWSJSON!) {
  publishThreadEvent(event: $event) {
    __typename
    ... on NewMessageEvent {
      tenantId
      threadId
      sequence
      message {
        id
        threadId
        role
        body
        toolCalls { id name input }
        toolResults { toolCallId name status output error durationMs }
        tokenCount
        model
        turnId
        metadata
        createdAt
      }
    }
    ... on AgentStatusEvent { tenantId threadId sequence agentId status activity }
    ... on ThreadUpdateEvent {
      tenantId
      threadId
      sequence
      thread { id status title metadata updatedAt }
    }
    ... on StreamChunkEvent { tenantId threadId sequence messageId chunk done }
  }
}`,
	publish.AgentActivities: `mutation Publish($event: AWSJSON!) {
  publishAgentActivity(event: $event) {
    __typename
    tenantId
    agentId
    threadId
    status
    activity
    timestamp
  }
}`,
}
