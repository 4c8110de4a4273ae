// The engine's process. Lines of JSON come in: {id, do, …} asks, {returned, result | failure} is what a function answered. Lines go out: {id, answer |
// failure}, and {call, function, payload} to have a function called.
import { createInterface } from 'node:readline';
import { Api } from './api.mjs';
import { compile } from './code.mjs';
import { matches } from './filter.mjs';

const send = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
const calls = new Map();
let last = 0;

function invoke(name, payload) {
  send({ call: ++last, function: name, payload });
  return new Promise((resolve, reject) => calls.set(last, { resolve, reject }));
}

let api;
const codes = new Map();

const work = {
  async start({ config }) {
    api = await Api.start(config, invoke);
  },
  execute: ({ request, caller }) => api.execute(request, caller),
  subscribe: ({ request, caller, name }) => api.subscribe(request, caller, name),
  async run({ text, step, ctx }) {
    if (!codes.has(text)) codes.set(text, await compile(text, 'code.js'));
    return codes.get(text)(step, ctx);
  },
  matches: ({ filter, event }) => matches(filter, event),
};

for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  if (message.returned) {
    const { resolve, reject } = calls.get(message.returned);
    calls.delete(message.returned);
    if (message.failure) reject(new Error(message.failure));
    else resolve(message.result);
    continue;
  }
  Promise.resolve()
    .then(() => work[message.do](message))
    .then((answer) => send({ id: message.id, answer: answer ?? null }), (e) => send({ id: message.id, failure: String(e.stack ?? e) }));
}
