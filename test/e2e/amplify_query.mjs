// Asks {appsync_url}/graphql with the real AWS Amplify client: a list, a mutation, and a thread that does not exist. Prints each answer as
// Amplify gives it, {data, errors}, one JSON object a line.
//
//   ENDPOINT   {appsync_url}/graphql, https
//   TOKEN      the access token
//   THREAD_ID  a thread that may be renamed
//   NODE_EXTRA_CA_CERTS  the CA of a local endpoint (read by Node itself)
import { Amplify } from 'aws-amplify';
import { generateClient } from 'aws-amplify/api';
import { decodeJWT } from 'aws-amplify/auth';

const { ENDPOINT, TOKEN, THREAD_ID, REGION = 'us-east-1' } = process.env;

Amplify.configure(
  { API: { GraphQL: { endpoint: ENDPOINT, region: REGION, defaultAuthMode: 'userPool' } } },
  { Auth: { tokenProvider: { getTokens: async () => ({ accessToken: decodeJWT(TOKEN) }) } } },
);
const client = generateClient();

// ask prints an answer; Amplify throws the answers that hold errors.
async function ask(query, variables) {
  const { data, errors } = await client.graphql({ query, variables }).catch((answer) => answer);
  process.stdout.write(JSON.stringify({ data, errors }) + '\n');
}

await ask(`query List { listThreads(limit: 100) { items { id title agent { name } } nextToken } }`);
await ask(`mutation Rename($id: ID!, $input: UpdateThreadInput!) { updateThread(id: $id, input: $input) { id title } }`,
  { id: THREAD_ID, input: { title: 'Changed by Amplify' } });
await ask(`query Get($id: ID!) { getThread(id: $id) { id } }`, { id: 'CHAT-999999' });
