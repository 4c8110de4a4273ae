// Who is signed in, and the platform's HTTP API. The tokens are kept in sessionStorage: they end with the tab.
const store = 'agentplatform.tokens';
let tokens = JSON.parse(sessionStorage.getItem(store) ?? 'null'); // {id, refresh}
let renewing = null;

export const outputs = fetch('/local/outputs.json').then((r) => r.json());

export const signedIn = () => tokens !== null;

// claims are those of the ID token; the platform checks its signature, this page only shows them.
export function claims() {
  const part = tokens.id.split('.')[1].replaceAll('-', '+').replaceAll('_', '/');
  return JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(part), (c) => c.charCodeAt(0))));
}

const unreachable = () => { throw new Error('The platform does not answer. Is it still running?'); };

const post = (url, headers, body) => fetch(url, { method: 'POST', headers, body: JSON.stringify(body) }).catch(unreachable);

// pool calls an operation of the identity pool; refused errors carry its type as their name.
async function pool(operation, input) {
  const { client_id: ClientId } = await outputs.catch(unreachable);
  const response = await post('/', {
    'Content-Type': 'application/x-amz-json-1.1', 'X-Amz-Target': 'AWSCognitoIdentityProviderService.' + operation,
  }, { ClientId, ...input });
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  throw Object.assign(new Error(answer.message ?? `The identity pool answered ${response.status}.`), { name: answer.__type ?? 'Error' });
}

function keep(result) {
  tokens = { id: result.IdToken, refresh: result.RefreshToken ?? tokens?.refresh };
  sessionStorage.setItem(store, JSON.stringify(tokens));
}

function forget() {
  tokens = null;
  sessionStorage.removeItem(store);
}

export async function signIn(USERNAME, PASSWORD) {
  const answer = await pool('InitiateAuth', { AuthFlow: 'USER_PASSWORD_AUTH', AuthParameters: { USERNAME, PASSWORD } });
  if (!answer.AuthenticationResult) throw new Error(`The identity pool asks for ${answer.ChallengeName}, which this page cannot do.`);
  keep(answer.AuthenticationResult);
}

export function signOut() {
  const refresh = tokens?.refresh;
  forget();
  if (refresh) pool('RevokeToken', { Token: refresh }).catch(() => {}); // signed out here in any case
}

// renew gets a new ID token; when the pool refuses, the session is over and the page is told.
export function renew() {
  renewing ??= pool('InitiateAuth', { AuthFlow: 'REFRESH_TOKEN_AUTH', AuthParameters: { REFRESH_TOKEN: tokens?.refresh } })
    .then((answer) => keep(answer.AuthenticationResult))
    .catch((e) => {
      if (e.name !== 'Error') {
        forget();
        dispatchEvent(new Event('session-ended'));
      }
      throw e;
    })
    .finally(() => { renewing = null; });
  return renewing;
}

// token is an ID token that is good for another half minute at least.
export async function token() {
  if (claims().exp * 1000 < Date.now() + 30_000) await renew();
  return tokens.id;
}

// graphql answers a request's data; any error in it is thrown in the API's own words.
export async function graphql(query, variables, again = false) {
  const response = await post('/graphql', { 'Content-Type': 'application/json', Authorization: 'Bearer ' + await token() }, { query, variables });
  if (response.status === 401 && !again) {
    await renew();
    return graphql(query, variables, true);
  }
  const { data, errors } = await response.json();
  if (errors?.length) throw new Error(errors[0].message);
  return data;
}
