// A thread's events by their numbers: each is told once and in order, also when the socket was gone for a while. What it did not bring is read.
import { graphql } from './session.js';

const fields = `__typename
  ... on NewMessageEvent { sequence message { id role body turnId createdAt } }
  ... on AgentStatusEvent { sequence status activity }
  ... on ThreadUpdateEvent { sequence thread { status title updatedAt } }
  ... on StreamChunkEvent { sequence messageId chunk }`;
const listen = `subscription ($id: ID!) { onThreadEvent(threadId: $id) { ${fields} } }`;
const missed = `query ($id: ID!, $after: Int!, $limit: Int!) { threadEvents(threadId: $id, after: $after, limit: $limit) { items { ${fields} } last prunedBefore } }`;

// newest is the number of the thread's last event.
export async function newest(id) {
  return (await graphql(missed, { id, after: 0, limit: 1 })).threadEvents.last;
}

// follow tells event each event behind a number. begin is asked for that number, at the first start; lost says that there are events which are kept
// no more, and is waited for; told comes after each batch. It returns what ends it.
export function follow(id, socket, { started, begin, event, lost, told, failed }) {
  let last = null, reading = false, again = false, closed = false, retry = 0;
  const waiting = new Map(); // events that came before others did, by number

  function take(e) {
    if (e.sequence !== last + 1) return false;
    last = e.sequence;
    event(e);
    return true;
  }

  function drain() {
    let some = false;
    for (let e; !closed && (e = waiting.get(last + 1)) && take(e); some = true) waiting.delete(e.sequence);
    for (const n of waiting.keys()) if (n <= last) waiting.delete(n);
    if (some) told();
    return waiting.size === 0;
  }

  async function read() {
    again = true;
    if (reading) return;
    reading = true;
    clearTimeout(retry);
    try {
      last ??= await begin();
      while (again && !closed) {
        again = false;
        const { threadEvents: page } = await graphql(missed, { id, after: last, limit: 500 });
        if (page.prunedBefore > last + 1) {
          await lost();
          last = page.prunedBefore - 1;
        }
        if (closed) return;
        page.items.forEach(take);
        told();
        again ||= last < page.last || !drain();
      }
    } catch (e) {
      if (closed) return;
      failed(e);
      retry = setTimeout(read, 2000);
    } finally {
      reading = false;
    }
  }

  const stop = socket.subscribe(listen, { id }, {
    started() {
      started();
      read();
    },
    data({ onThreadEvent: e }) {
      waiting.set(e.sequence, e);
      if (last !== null && !reading && !drain()) read();
    },
    failed,
  });
  return () => {
    closed = true;
    clearTimeout(retry);
    stop();
  };
}
