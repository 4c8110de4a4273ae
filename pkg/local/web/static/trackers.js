// The tenant's task trackers, and the user's connections to them: connect and disconnect.
import { person, trackers } from './connection.js';
import { $, h } from './dom.js';
import { claims, graphql, signedIn } from './session.js';

// all are the items of every page of a list.
async function all(list, fields) {
  const items = [];
  let after;
  do {
    const { [list]: page } = await graphql(`query ($after: String) { ${list}(limit: 100, nextToken: $after) { items { ${fields} } nextToken } }`, { after });
    items.push(...page.items);
    after = page.nextToken;
  } while (after);
  return items;
}

// show lists the trackers, when there are any; a button does its act by way of act, which tells what goes wrong.
export async function show(act) {
  const user = claims()['custom:user_id'];
  const [integrations, connections] = await Promise.all([all('listIntegrations', 'id name provider'),
    all('listConnections', 'id userId integrationId providerUserId accountName status reason')]);
  if (!signedIn() || claims()['custom:user_id'] !== user) return; // meanwhile it is somebody else's page
  const clients = integrations.filter((i) => i.provider in trackers);
  $('connections').hidden = clients.length === 0;
  $('trackers').replaceChildren(...clients.map((client) => {
    const mine = connections.filter((c) => c.userId === user && c.integrationId === client.id);
    const button = (word, about, on) => {
      const b = h('button', { type: 'button', 'aria-label': `${word} ${about}` }, word);
      b.addEventListener('click', () => act(on, b));
      return b;
    };
    return h('li', null, h('p', null, h('span', null, `${client.name} · ${trackers[client.provider]}`), button('Connect', client.name, () => connect(client.id))),
      ...mine.map((c) => h('p', { class: 'hint' }, h('span', null, c.status === 'active' ? `Connected as ${person(c)}` : `${person(c)}: connect again, ${c.reason}`),
        button('Disconnect', person(c), () => disconnect(c.id)))));
  }));
}

// connect leaves for the tracker's page, which sends the browser back here.
async function connect(integrationId) {
  const { startConnection } = await graphql('mutation ($input: StartConnectionInput!) { startConnection(input: $input) { authorizationUrl } }',
    { input: { integrationId, redirectUri: location.origin + '/' } });
  location.assign(startConnection.authorizationUrl);
}

const disconnect = (id) => graphql('mutation ($id: ID!) { deleteConnection(id: $id) { id } }', { id });
