// Opens the whole page at an address, without a browser: page.html with its scripts. Does what a user does there, and prints what came of it.
//
//   OPEN       the address, with what a task tracker sends the browser back with, or without
//   SESSION    what the tab keeps, as JSON
//   DO         sign-in · connect · disconnect · sign-out, one after the other, with spaces between; notice and list wait until the page shows them
//   EMAIL, PASSWORD   who signs in
//   TRACKER    which one to connect to, by its name
//   PERSON     who the user is there: connect goes there, allows it, and ends where the tracker sends the browser back to
//
// Ends with 0 and a line: where the tracker has sent the browser (back), what the page shows, how often it asked to complete a connection (asked), and what the
// tab keeps (session); or with 1 and {error} when something was waited for in vain.
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import WebSocket from 'ws';

const { OPEN, SESSION = '{}', DO = '', EMAIL, PASSWORD, TRACKER, PERSON } = process.env;
const here = new URL(OPEN);
const folder = mkdtempSync(join(tmpdir(), 'page'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
cpSync(fileURLToPath(new URL('../../pkg/local/web/static', import.meta.url)), folder, { recursive: true });
writeFileSync(join(folder, 'package.json'), '{"type":"module"}'); // as the page loads them

// What a browser has and Node has not: as much of a document as the page uses.
class Element extends EventTarget {
  children = []; // elements and texts
  attributes = {};
  parent = null;
  style = {};
  scrollTop = 0;
  scrollHeight = 0;
  clientHeight = 0;
  value = '';
  constructor(tag) { super(); this.tag = tag; }
  classList = { toggle: () => {} };
  get id() { return this.attributes.id; }
  get hidden() { return 'hidden' in this.attributes; }
  set hidden(is) { if (is) this.attributes.hidden = ''; else delete this.attributes.hidden; }
  get className() { return this.attributes.class ?? ''; }
  set className(name) { this.attributes.class = name; }
  get textContent() { return this.children.map((c) => c.textContent ?? c).join(''); }
  set textContent(text) { this.replaceChildren(...(text ? [text] : [])); }
  get elements() { return this.children.filter((c) => c instanceof Element); }
  get firstChild() { return this.children[0] ?? null; }
  get firstElementChild() { return this.elements[0] ?? null; }
  get lastElementChild() { return this.elements.at(-1) ?? null; }
  get nextSibling() { return this.parent?.children[this.parent.children.indexOf(this) + 1] ?? null; }
  setAttribute(name, value) { this.attributes[name] = String(value); }
  getAttribute(name) { return this.attributes[name] ?? null; }
  insertBefore(child, before) {
    child.remove?.();
    const at = before ? this.children.indexOf(before) : this.children.length;
    this.children.splice(at, 0, child);
    if (child instanceof Element) child.parent = this;
  }
  append(...children) { for (const c of children) this.insertBefore(c, null); }
  replaceChildren(...children) {
    for (const c of this.elements) c.parent = null;
    this.children = [];
    this.append(...children);
  }
  remove() {
    this.parent?.children.splice(this.parent.children.indexOf(this), 1);
    this.parent = null;
  }
  replaceWith(other) {
    this.parent.insertBefore(other, this);
    this.remove();
  }
  find(fits) { return this.elements.flatMap((e) => [...(fits(e) ? [e] : []), ...e.find(fits)]); }
  querySelectorAll(selector) { return this.find((e) => (selector[0] === '.' ? e.className.split(' ').includes(selector.slice(1)) : e.tag === selector)); }
  querySelector(selector) { return this.querySelectorAll(selector)[0] ?? null; }
  focus() {}
  select() {}
  showModal() { this.attributes.open = ''; }
  close() { delete this.attributes.open; }
  click() { if (!this.disabled) this.dispatchEvent(new Event('click')); }
}

const document = Object.assign(new Element('document'), { title: '', createElement: (tag) => new Element(tag), getElementById: (id) => document.find((e) => e.id === id)[0] ?? null });
let into = document;
for (const [, close, tag, attributes, text] of readFileSync(join(folder, 'page.html'), 'utf8').matchAll(/<(?:(\/)?(\w+)([^>]*)|![^>]*)>|([^<]+)/g)) {
  if (text) into.append(text);
  else if (close) into = into.parent;
  else if (tag) {
    const element = new Element(tag);
    for (const [, name, value = ''] of attributes.matchAll(/([\w-]+)(?:="([^"]*)")?/g)) element.setAttribute(name, value);
    into.append(element);
    if (!['meta', 'link', 'input', 'img'].includes(tag)) into = element;
  }
}
document.body = document.querySelector('body');

const kept = new Map(Object.entries(JSON.parse(SESSION)));
const windowEvents = new EventTarget();
const ask = globalThis.fetch;
const asked = []; // what was asked of the API
let gone = null; // where the page has sent the browser
const location = {
  get href() { return here.href; }, get search() { return here.search; }, get hash() { return here.hash; }, get pathname() { return here.pathname; },
  get origin() { return here.origin; }, get host() { return here.host; }, get protocol() { return here.protocol; }, assign: (address) => { gone = address; },
};
const change = (_state, _title, address) => { here.href = new URL(address, here).href; };
Object.assign(globalThis, {
  document, location, WebSocket, history: { replaceState: change, pushState: change }, matchMedia: () => ({ matches: true }),
  addEventListener: windowEvents.addEventListener.bind(windowEvents), dispatchEvent: windowEvents.dispatchEvent.bind(windowEvents),
  sessionStorage: { getItem: (k) => kept.get(k) ?? null, setItem: (k, v) => kept.set(k, v), removeItem: (k) => kept.delete(k) },
  fetch: (path, options) => {
    asked.push(options?.body ?? '');
    return ask(new URL(path, here), options);
  },
});

const $ = (id) => document.getElementById(id);
async function until(what, is) {
  for (const end = Date.now() + 30_000; !is();) {
    if (Date.now() > end) {
      console.log(JSON.stringify({ error: `no ${what}`, notice: $('notice').textContent, problem: $('problem').textContent, refused: $('refused').textContent }));
      process.exit(1);
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
const button = (does) => $('trackers').find((e) => e.tag === 'button' && e.getAttribute('aria-label').startsWith(does))[0];

await import(pathToFileURL(join(folder, 'page.js')).href);
const address = here.href; // once the page's scripts have run for the first time
let back = null;
const acts = {
  async 'sign-in'() {
    await until('door', () => !$('door').hidden);
    [$('email').value, $('password').value] = [EMAIL, PASSWORD];
    $('signin').dispatchEvent(new Event('submit', { cancelable: true }));
    await until('way in', () => !$('app').hidden);
  },
  async connect() {
    await until('connections', () => !$('connections').hidden && button('Connect ' + TRACKER));
    $('connections').click();
    button('Connect ' + TRACKER).click();
    await until('address of the tracker', () => gone);
    const answer = await ask(gone, { redirect: 'manual', headers: { 'X-Person': PERSON } });
    back = answer.headers.get('location') ?? await answer.text();
  },
  async disconnect() {
    await until('connection', () => button('Disconnect ' + PERSON));
    button('Disconnect ' + PERSON).click();
    await until('end of the connection', () => !button('Disconnect ' + PERSON));
  },
  async 'sign-out'() {
    $('signout').click();
    await until('door', () => !$('door').hidden);
  },
  notice: () => until('notice', () => $('notice').textContent),
  list: () => until('list of trackers', () => !$('connections').hidden),
};
for (const act of DO.split(' ').filter(Boolean)) await acts[act]();
console.log(JSON.stringify({
  address, back, notice: $('notice').textContent, failed: $('notice').className === 'problem', door: !$('door').hidden, waits: !$('door').hidden && !$('back-here').hidden, refused: $('refused').textContent,
  trackers: $('trackers').find((e) => e.tag === 'span').map((e) => e.textContent), asked: asked.filter((q) => q.includes('completeConnection')).length,
  session: JSON.stringify(Object.fromEntries(kept)),
}));
process.exit(0);
