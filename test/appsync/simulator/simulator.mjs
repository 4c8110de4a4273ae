// Hosts the SDL in Amplify's AppSync simulator, which knows mapping templates (VTL) only: testdata/*.vtl are the twins of resolver.js and publish.js.
//
// The first line of standard input is {sdl, rows: {Type.field: {function, batch}}, publishing: [field], templates: {request, response, publish}, functions: URL}; functions are
// called by POST <functions>/<name>. The API's URL is the one line of standard output. It ends with standard input.
import { createInterface } from 'node:readline';

console.log = console.error; // the simulator talks
const { AmplifyAppSyncSimulator } = await import('@aws-amplify/amplify-appsync-simulator');
const { filterSubscriptions } = await import('@aws-amplify/amplify-appsync-simulator/lib/utils/index.js');

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const { sdl, rows, publishing, templates, functions } = JSON.parse((await lines.next()).value);

const invoke = (name) => async (payload) => {
  const answer = await fetch(`${functions}/${name}`, { method: 'POST', body: JSON.stringify(payload) });
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
};
const unit = (field, dataSourceName, request, response) => {
  const [typeName, fieldName] = field.split('.');
  return { kind: 'UNIT', typeName, fieldName, dataSourceName, requestMappingTemplate: request, responseMappingTemplate: response };
};
const operation = (batch) => templates.request.replace('$OPERATION', batch ? 'BatchInvoke' : 'Invoke');

const simulator = new AmplifyAppSyncSimulator();
const { _httpServer: server } = simulator._server;
const listen = server.listen.bind(server);
server.listen = () => listen(0, '127.0.0.1'); // it would take all addresses
simulator.init({
  schema: { content: sdl },
  appSync: { name: 'platform', defaultAuthenticationType: { authenticationType: 'AMAZON_COGNITO_USER_POOLS', cognitoUserPoolConfig: {} }, additionalAuthenticationProviders: [{ authenticationType: 'AWS_IAM' }] },
  dataSources: [{ type: 'NONE', name: 'none' }, ...Object.values(rows).map((row) => ({ type: 'AWS_LAMBDA', name: row.function, invoke: invoke(row.function) }))],
  resolvers: [
    ...Object.entries(rows).map(([field, row]) => unit(field, row.function, operation(row.batch), templates.response)),
    ...publishing.map((field) => unit(`Mutation.${field}`, 'none', templates.publish, '$util.toJson($ctx.result)')),
  ],
});
// The simulator's filter is right and never told the arguments: its subscriptions would hear everything.
for (const field of Object.values(simulator.schema.getSubscriptionType().getFields())) {
  const all = field.subscribe;
  field.subscribe = (source, args, context, info) => {
    const events = all(source, args, context, info);
    const next = async () => {
      const event = await events.next();
      return event.done || filterSubscriptions(event.value, args) ? event : next();
    };
    return { next, return: () => events.return(), throw: (e) => events.throw(e), [Symbol.asyncIterator]() { return this; } };
  };
}
await simulator.start();
process.stdout.write(`http://127.0.0.1:${server.address().port}\n`);
await lines.next();
process.exit();
