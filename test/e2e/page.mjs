// Runs the page's own scripts against a platform, without a browser: signs in, opens a thread, and prints what the page would show of it, one JSON
// object a line. The socket is cut again and again while a reply streams.
//
//   API_URL            of the platform
//   EMAIL, PASSWORD    who signs in
//   THREAD_ID          for example CHAT-1
//   BODY               sent once the page listens
//   CUTS               how often the socket is cut
//   TIMEOUT_MS         give up after this; default 60000
//
// Lines: {"cut": n} · {"draft": {id, text}} · {"reply": {id, body}, "status": …} · {"error": message}
// Ends with the reply with 0, after an error with 1, after the timeout with 2.
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import WebSocket from 'ws';

const { API_URL, EMAIL, PASSWORD, THREAD_ID, BODY, CUTS, TIMEOUT_MS = '60000' } = process.env;
const print = (line) => process.stdout.write(JSON.stringify(line) + '\n');
const end = (code) => {
  rmSync(folder, { recursive: true, force: true });
  process.exit(code);
};
setTimeout(() => {
  print({ error: `nothing more within ${TIMEOUT_MS} ms` });
  end(2);
}, Number(TIMEOUT_MS));

// What a browser has and Node has not.
const sockets = new Set();
const kept = new Map();
const ask = globalThis.fetch;
Object.assign(globalThis, {
  location: new URL(API_URL),
  sessionStorage: { getItem: (k) => kept.get(k) ?? null, setItem: (k, v) => kept.set(k, v), removeItem: (k) => kept.delete(k) },
  fetch: (path, options) => ask(new URL(path, API_URL), options),
  dispatchEvent: () => {},
  WebSocket: class extends WebSocket {
    constructor(...args) {
      super(...args);
      sockets.add(this);
      this.on('close', () => sockets.delete(this));
      this.on('error', () => {}); // a cut is not news
    }
  },
});

const folder = mkdtempSync(join(tmpdir(), 'page'));
cpSync(fileURLToPath(new URL('../../pkg/local/web/static', import.meta.url)), folder, { recursive: true });
writeFileSync(join(folder, 'package.json'), '{"type":"module"}'); // as the page loads them
const load = (name) => import(pathToFileURL(join(folder, name)).href);
const { graphql, signIn } = await load('session.js');
const { realtime } = await load('realtime.js');
const { Conversation } = await load('conversation.js');

await signIn(EMAIL, PASSWORD);
let cuts = 0, shown = '';
const open = new Conversation(THREAD_ID, realtime(() => {}), {
  changed() {
    if (open.draft && open.draft.text !== shown) print({ draft: { id: open.draft.id, text: (shown = open.draft.text) } });
    const reply = [...open.messages.values()].find((m) => m.role === 'assistant');
    if (!reply || open.status === 'streaming' || open.status === 'thinking' || !open.turns.get(reply.turnId)?.finishedAt) return;
    print({ reply: { id: reply.id, body: reply.body }, status: open.status, draft: open.draft });
    end(0);
  },
  failed(e) {
    if (e) print({ error: e.message });
  },
});
await open.started;
await graphql('mutation ($input: SendMessageInput!) { sendMessage(input: $input) { id } }', { input: { threadId: THREAD_ID, body: BODY } });
(function cut() {
  if (cuts >= Number(CUTS)) return;
  const live = [...sockets].find((s) => s.ready);
  if (live && open.draft) {
    print({ cut: ++cuts });
    live.terminate();
  }
  setTimeout(cut, 50 + 250 * Math.random());
})();
