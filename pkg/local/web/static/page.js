// The page: the door (sign in), connections to task trackers, the list of threads, the open thread, and what is sent.
import { complete, forget, isBack } from './connection.js';
import { Conversation, over } from './conversation.js';
import { $, ago, arrange, clock, h, say } from './dom.js';
import { realtime } from './realtime.js';
import { record } from './record.js';
import { claims, graphql, outputs, signedIn, signIn, signOut } from './session.js';
import { show as showTrackers } from './trackers.js';

const doing = { idle: 'Ready', thinking: 'Thinking', calling_tool: 'Using a tool', streaming: 'Streaming', error: 'Error' };
const sockets = { live: 'Live', connecting: 'Connecting…', waiting: 'Connection lost. Trying again…' };
let socket = null;
let open = null; // the Conversation shown; null: a new thread
const threads = new Map(); // by id
let older = null; // asks for the threads after those loaded
let pending = null; // what is being sent: a retry of the same text must not send it twice

// ---- The door

function show() {
  $('door').hidden = signedIn();
  $('app').hidden = !signedIn();
  $('back-here').hidden = !isBack();
  $('door').append($('outputs'));
  if (signedIn()) enter();
  else $('email').focus();
}

function leave(why) {
  open?.close();
  socket?.close();
  open = socket = pending = null;
  threads.clear();
  $('text').value = '';
  $('sheet').close();
  $('links').close();
  $('connections').hidden = true;
  $('trackers').replaceChildren();
  notice();
  history.replaceState(null, '', '/');
  show();
  say($('refused'), why);
}

$('signin').addEventListener('submit', async (e) => {
  e.preventDefault();
  const button = e.submitter ?? $('signin').querySelector('button');
  button.disabled = true;
  say($('refused'));
  try {
    await signIn($('email').value.trim(), $('password').value);
    $('password').value = '';
    show();
  } catch (problem) {
    say($('refused'), problem.message);
    $('password').select();
  } finally {
    button.disabled = false;
  }
});
for (const user of $('users').querySelectorAll('button')) {
  user.addEventListener('click', () => {
    $('email').value = user.textContent;
    $('password').focus();
  });
}
$('signout').addEventListener('click', () => {
  signOut();
  forget();
  leave();
});
addEventListener('session-ended', () => leave('Your session has ended. Sign in again.'));

outputs.then((all) => $('outputs').querySelector('dl').append(...Object.entries(all).flatMap(([name, value]) => {
  const copy = h('button', { type: 'button', 'aria-label': `Copy ${name}` }, 'Copy');
  copy.addEventListener('click', async () => {
    copy.textContent = await navigator.clipboard.writeText(value).then(() => 'Copied', () => 'Not allowed');
    setTimeout(() => { copy.textContent = 'Copy'; }, 1500);
  });
  const secret = name.includes('secret') || /:\/\/[^/]*:[^/]*@/.test(value);
  return [h('dt', null, name), h('dd', null, h('code', null, secret ? value.replace(/^(.*:\/\/[^:]*:)?[^@]*/, '$1••••••') : value), copy)];
})), () => say($('refused'), 'The platform does not answer. Is it still running?'));
$('details').addEventListener('click', () => {
  $('sheet').append($('outputs'));
  $('sheet').showModal();
});

// ---- Connections to task trackers

// notice tells what came of something, and whether it failed, or takes that away.
function notice(text, failed) {
  $('notice').textContent = text ?? '';
  $('notice').className = failed ? 'problem' : '';
}

// act does what a button is for, once at a time.
async function act(on, button) {
  button.disabled = true;
  notice();
  try {
    await on();
    await showTrackers(act);
  } catch (e) {
    $('links').close(); // it covers the notice
    if (signedIn()) notice(e.message, true);
  } finally {
    button.disabled = false;
  }
}

$('connections').addEventListener('click', () => {
  $('links').showModal();
  act(() => {}, $('connections'));
});

// connections completes the connection that the user has come back with, if there is one, and offers the trackers that there are.
async function connections() {
  const told = await complete();
  if (told) notice(told.text, told.failed);
  await showTrackers(act);
}

// ---- Threads

async function enter() {
  const who = claims();
  $('who').firstElementChild.textContent = who['custom:tenant_slug'] ?? 'no tenant';
  $('who').lastElementChild.textContent = `${who.email} · ${who['custom:role'] ?? 'no role'}`;
  socket = realtime((state) => {
    $('socket').textContent = sockets[state];
    $('socket').className = state;
  });
  route();
  attempt(connections);
  await attempt(async () => {
    const agents = (await graphql('{ listAgents(limit: 100) { items { id name status } } }')).listAgents.items;
    const usable = agents.filter((a) => a.status === 'created' || a.status === 'active');
    $('agent').replaceChildren(h('option', { value: '' }, 'Default agent'), ...usable.map((a) => h('option', { value: a.id }, a.name)));
  });
  await attempt(() => list());
}

async function list(after) {
  const { listThreads: page } = await graphql(`query ($after: String) { listThreads(limit: 30, nextToken: $after) {
    items { id title status updatedAt agent { name } } nextToken } }`, { after });
  if (after || threads.size === 0) older = page.nextToken;
  for (const t of page.items) threads.set(t.id, t);
  renderList();
}

function renderList() {
  const newest = [...threads.values()].sort((a, b) => (a.updatedAt < b.updatedAt ? 1 : -1));
  $('none').hidden = newest.length > 0;
  $('more').hidden = !older;
  arrange($('threads'), newest.map((t) => {
    const here = open?.id === t.id;
    const about = [t.id, t.agent?.name, t.status !== 'open' && t.status, ago(t.updatedAt)].filter(Boolean).join(' · ');
    return [t.id, JSON.stringify([t.title, about, here]), () => h('li', null,
      h('a', { href: '#' + t.id, 'aria-current': here && 'page' }, h('span', { class: 'name' }, t.title || t.id),
        h('span', { class: 'hint' }, about)))];
  }));
}

$('more').addEventListener('click', () => attempt(() => list(older)));
setInterval(() => signedIn() && !document.hidden && list().catch(() => {}), 15_000); // other people and channels open threads too

// ---- The open thread

function route() {
  const id = /^#([A-Z]+-\d+)$/.exec(location.hash)?.[1];
  document.body.classList.toggle('listing', location.hash === ''); // on a phone: the list or the thread
  if (!signedIn() || (open && open.id === id)) return;
  open?.close();
  say($('problem'));
  notice();
  $('log').setAttribute('aria-live', 'off'); // what is there already is read, not announced
  open = id ? new Conversation(id, socket, { changed: render, failed: (e) => say($('problem'), e?.message) }) : null;
  render();
  renderList();
  if (id) $('title').focus({ preventScroll: true });
  else if (location.hash !== '' || matchMedia('(min-width: 48rem)').matches) $('text').focus();
}
addEventListener('hashchange', route);

function render() {
  const thread = open?.thread;
  const agent = thread?.agent?.name ?? 'Agent';
  $('title').textContent = open ? thread?.title || open.id : 'New thread';
  $('about').textContent = thread ? [open.id, agent, thread.status].join(' · ') : '';
  document.title = `${$('title').textContent} · Agent Platform`;
  $('start').hidden = open !== null;
  $('earlier').hidden = !open?.earlier;

  const scroll = $('scroll');
  const atEnd = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 80;
  arrange($('log'), open ? items(open, agent) : []);
  if (open?.draft) $('log').lastElementChild.querySelector('.body').textContent = open.draft.text;
  if (atEnd || $('log').getAttribute('aria-live') === 'off') scroll.scrollTop = scroll.scrollHeight;
  setTimeout(() => open?.thread && $('log').setAttribute('aria-live', 'polite'));

  const status = open?.status ?? 'idle';
  $('status').className = status;
  $('status').textContent = doing[status] + (open?.activity && status !== 'error' ? ` · ${open.activity}` : '');
}

// items are the messages, each turn's record behind its last message, and the reply while it is written. The reply is announced once it
// is complete: a screen reader cannot keep up with its pieces.
function items(conversation, agent) {
  const names = { user: 'User', assistant: agent, system: 'System', tool: 'Tool' };
  const ordered = [...conversation.messages.values()].sort((a, b) => (a.createdAt < b.createdAt ? -1 : 1));
  const last = new Map(ordered.map((m) => [m.turnId, m.id]));
  const list = [];
  for (const m of ordered) {
    list.push([m.id, 'whole', () => h('article', { class: 'message ' + m.role },
      h('header', null, h('strong', null, names[m.role]), clock(m.createdAt)), h('div', { class: 'body' }, m.body))]);
    const turn = last.get(m.turnId) === m.id && conversation.turns.get(m.turnId);
    if (over(turn)) list.push(['turn ' + turn.id, turn.status, () => record(turn)]);
  }
  if (conversation.draft) {
    list.push([conversation.draft.id, 'draft', () => h('article', { class: 'message assistant draft', 'aria-live': 'off', 'aria-busy': 'true' },
      h('header', null, h('strong', null, agent)), h('div', { class: 'body' }))]);
  }
  return list;
}

$('earlier').addEventListener('click', () => open.load(open.earlier));

// ---- Sending

async function attempt(act) {
  try {
    await act();
  } catch (e) {
    if (signedIn()) say($('problem'), e.message);
  }
}

async function send() {
  const body = $('text').value;
  const button = $('composer').querySelector('button');
  if (!body.trim() || button.disabled) return;
  button.disabled = true;
  say($('problem'));
  if (pending?.body !== body || pending.id !== open?.id) pending = { body, id: open?.id, token: crypto.randomUUID() };
  const { token } = pending;
  await attempt(async () => {
    if (!open) {
      const title = body.split('\n').find((line) => line.trim() && !line.startsWith('/'))?.trim().slice(0, 80);
      const input = { title, agentId: $('agent').value || undefined, clientToken: token };
      const { createThread } = await graphql('mutation ($input: CreateThreadInput!) { createThread(input: $input) { id } }', { input });
      pending.id = createThread.id;
      history.pushState(null, '', '#' + createThread.id);
      route();
    }
    const to = open;
    await Promise.race([to.started, new Promise((resolve) => setTimeout(resolve, 1500))]); // listen first, then speak
    const { sendMessage } = await graphql(`mutation ($input: SendMessageInput!) { sendMessage(input: $input) {
      id role body turnId createdAt } }`, { input: { threadId: to.id, body, clientToken: token } });
    pending = null;
    if ($('text').value === body) $('text').value = '';
    to.messages.set(sendMessage.id, sendMessage);
    grow();
    render();
    $('scroll').scrollTop = $('scroll').scrollHeight;
    await list();
  });
  button.disabled = false;
  $('text').focus();
}

// grow fits the message field to its text, within limits that the style sheet sets.
function grow() {
  $('text').style.height = 'auto';
  $('text').style.height = `${$('text').scrollHeight + 2}px`;
}

$('text').addEventListener('input', grow);
$('text').addEventListener('keydown', (e) => {
  if (e.key !== 'Enter' || e.shiftKey || e.isComposing) return;
  e.preventDefault();
  send();
});
$('composer').addEventListener('submit', (e) => {
  e.preventDefault();
  send();
});

show();
