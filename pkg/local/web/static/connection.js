// A user's connection to a task tracker, where the tracker sends the browser back to: to this page, with a state and a code, or with a state
// and an error. Neither stays in the address; they are kept in memory until they are used, and for whoever signs in first.
import { graphql, signedIn } from './session.js';

// trackers are the providers that users connect to, and what people call them.
export const trackers = { linear: 'Linear', jira: 'Jira', asana: 'Asana' };

let back = take(); // {state, code} or {state, error}; null: nobody has come back

// take takes what a tracker has sent out of the address.
function take() {
  const query = new URLSearchParams(location.search);
  const [state, code, error] = ['state', 'code', 'error'].map((name) => query.get(name));
  if (state === null && code === null && error === null) return null;
  history.replaceState(null, '', location.pathname + location.hash);
  return state && (code || error) ? { state, code, error } : null;
}

export const isBack = () => back !== null;

export const forget = () => { back = null; };

// person is who the user is at the tracker, in which workspace or site.
export const person = (c) => c.providerUserId + (c.accountName ? ` (${c.accountName})` : '');

const refused = (error) => (error === 'access_denied' ? 'The connection was not allowed at the tracker.'
  : `The tracker has made no connection: ${/^[a-z_]{1,40}$/.test(error) ? error : 'it does not say why'}.`);

// complete uses what the user who is signed in has come back with, and gives what came of it, {text, failed}; null: nothing to tell. When the session
// turns out to have ended, nothing was used yet: the next one to sign in has it.
export async function complete() {
  const came = back;
  if (!came || came.used) return null;
  came.used = true;
  let told;
  try {
    if (!came.code) throw new Error(refused(came.error));
    const { completeConnection: made } = await graphql(`mutation ($input: CompleteConnectionInput!) { completeConnection(input: $input) {
      provider providerUserId accountName } }`, { input: { state: came.state, code: came.code } });
    told = { text: `${trackers[made.provider]} is connected as ${person(made)}.`, failed: false };
  } catch (e) {
    if (!signedIn()) {
      came.used = false;
      return null;
    }
    told = { text: e.message, failed: true };
  }
  if (back !== came) return null; // signed out meanwhile: this is for nobody else to read
  forget();
  return told;
}
