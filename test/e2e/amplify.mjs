// Follows a thread with the real AWS Amplify client and prints what it sees, one JSON object a line.
//
//   ENDPOINT    {appsync_url}/graphql, https. Amplify subscribes at wss://<the same>/realtime.
//   TOKEN       the access token; or TOKEN_FILE, a file with it, read again whenever Amplify asks (a refresh, as it were)
//   ID_TOKEN    optional; sent by Amplify nowhere, but part of its session
//   THREAD_ID   whose onThreadEvent to follow, for example CHAT-1
//   AGENT_ID    optional: follow its onAgentActivity too
//   BODY        optional: send this message once all subscriptions have started
//   TIMEOUT_MS  give up after this; default 60000
//   NODE_EXTRA_CA_CERTS  the CA of a local endpoint (read by Node itself)
//
// Lines: {"connection": state} · {"started": field} · {"sent": message} · {"field": field, "event": event} · {"error": error}
// Ends after the assistant's NewMessageEvent with 0, after an error with 1, after the timeout with 2.
import { readFileSync } from 'node:fs';
import { Amplify } from 'aws-amplify';
import { CONNECTION_STATE_CHANGE, generateClient } from 'aws-amplify/api';
import { decodeJWT } from 'aws-amplify/auth';
import { Hub } from 'aws-amplify/utils';
import WebSocket from 'ws';

globalThis.WebSocket = WebSocket; // Node 20 has none of its own

const { ENDPOINT, TOKEN, TOKEN_FILE, ID_TOKEN, THREAD_ID, AGENT_ID, BODY, REGION = 'us-east-1', TIMEOUT_MS = '60000' } = process.env;
const print = (line) => process.stdout.write(JSON.stringify(line) + '\n');

const timeout = setTimeout(() => {
  print({ error: `nothing more within ${TIMEOUT_MS} ms` });
  process.exit(2);
}, Number(TIMEOUT_MS));

const tokenProvider = {
  async getTokens() {
    const access = TOKEN_FILE ? readFileSync(TOKEN_FILE, 'utf8').trim() : TOKEN;
    return { accessToken: decodeJWT(access), idToken: ID_TOKEN ? decodeJWT(ID_TOKEN) : undefined };
  },
};
Amplify.configure(
  { API: { GraphQL: { endpoint: ENDPOINT, region: REGION, defaultAuthMode: 'userPool' } } },
  { Auth: { tokenProvider } },
);
const client = generateClient();

const documents = {
  onThreadEvent: `subscription Follow($threadId: ID!) {
    onThreadEvent(threadId: $threadId) {
      __typename
      ... on NewMessageEvent { threadId message { id threadId role body createdAt } }
      ... on AgentStatusEvent { threadId agentId status activity }
      ... on ThreadUpdateEvent { threadId thread { id status title metadata updatedAt } }
      ... on StreamChunkEvent { threadId messageId chunk done }
    }
  }`,
  onAgentActivity: `subscription Watch($agentId: ID!) {
    onAgentActivity(agentId: $agentId) { __typename agentId threadId status activity timestamp }
  }`,
  sendMessage: `mutation Send($input: SendMessageInput!) {
    sendMessage(input: $input) { id threadId role body createdAt }
  }`,
};

const subscriptions = new Map();
const waiting = new Set(); // fields that have not started yet
let sent = false;

// end stops the subscriptions; Amplify then closes the socket, and Node ends when nothing is left to wait for.
function end(code) {
  process.exitCode ||= code;
  clearTimeout(timeout);
  for (const s of subscriptions.values()) s.unsubscribe();
  subscriptions.clear();
  setTimeout(() => process.exit(), 3000).unref();
}

// fail prints an error in Amplify's or JavaScript's form.
function fail(error) {
  print({ error: error?.errors?.map((e) => ({ errorType: e.errorType, message: e.message })) ?? String(error?.stack ?? error) });
  end(1);
}

async function started(field) {
  print({ started: field });
  waiting.delete(field);
  if (waiting.size > 0 || sent || !BODY) return;
  sent = true;
  const answer = await client.graphql({ query: documents.sendMessage, variables: { input: { threadId: THREAD_ID, body: BODY } } });
  print({ sent: answer.data.sendMessage });
}

Hub.listen('api', ({ payload }) => {
  if (payload.event === CONNECTION_STATE_CHANGE) print({ connection: payload.data.connectionState });
  if (payload.event === 'Subscription ack') started(payload.data.query.includes('onThreadEvent') ? 'onThreadEvent' : 'onAgentActivity').catch(fail);
});

function subscribe(field, variables) {
  waiting.add(field);
  const stream = client.graphql({ query: documents[field], variables });
  subscriptions.set(field, stream.subscribe({
    next({ data }) {
      const event = data[field];
      print({ field, event });
      if (event?.__typename === 'NewMessageEvent' && event.message.role === 'assistant') end(0);
    },
    error: fail,
  }));
}

subscribe('onThreadEvent', { threadId: THREAD_ID });
if (AGENT_ID) subscribe('onAgentActivity', { agentId: AGENT_ID });
