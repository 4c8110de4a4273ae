// One open thread: its messages, its turns, and the reply while it is written.
import { follow, newest } from './follow.js';
import { graphql } from './session.js';

const message = 'id role body turnId createdAt';
const turn = `id status model inputTokens outputTokens costUsd error attempts queuedAt startedAt finishedAt
  phases { name startedAt finishedAt durationMs } toolOutcomes { name status durationMs error }`;
const read = `query ($id: ID!, $before: String) { getThread(id: $id) { id title status agent { name } updatedAt
  messages(limit: 50, order: NEWEST_FIRST, nextToken: $before) { items { ${message} } nextToken } turns(limit: 50) { items { ${turn} } } } }`;

export const over = (t) => t && !['queued', 'running', 'waiting'].includes(t.status);

export class Conversation {
  thread = null;
  messages = new Map(); // by id: a NewMessageEvent may come twice
  turns = new Map(); // by id
  draft = null; // {id, text}: the reply so far
  status = 'idle';
  activity = '';
  earlier = null; // asks for the messages before
  #statuses = 0; // how many were heard
  #unsettled = false; // a turn may have ended since the turns were read
  #stop;

  // changed is called after each change, failed with what went wrong, or null once nothing does.
  constructor(id, socket, { changed, failed }) {
    Object.assign(this, { id, changed, failed });
    this.started = new Promise((started) => {
      this.#stop = follow(id, socket, {
        started,
        begin: () => this.#begin(),
        event: (e) => this.#event(e),
        lost: async () => {
          this.draft = null;
          await this.#read();
        },
        told: () => {
          if (this.#unsettled) this.settle();
          this.changed();
        },
        failed: (e) => this.failed(e),
      });
    });
    this.load();
  }

  // begin reads the thread, and says behind which number it goes on: where a turn is at work, what it has said so far is told again.
  async #begin() {
    const last = await newest(this.id);
    await this.#read();
    return [...this.turns.values()].every(over) ? last : 0;
  }

  close() {
    this.#stop();
    this.changed = this.failed = () => {};
  }

  async load(before) {
    try {
      await this.#read(before);
    } catch (e) {
      this.failed(e);
    }
  }

  async #read(before) {
    const heard = this.#statuses;
    const { getThread: thread } = await graphql(read, { id: this.id, before });
    const more = thread.messages.nextToken;
    if (before || !this.thread) this.earlier = more;
    this.thread = thread;
    for (const m of thread.messages.items) this.messages.set(m.id, m);
    if (this.messages.has(this.draft?.id)) this.draft = null;
    for (const t of thread.turns.items) this.#record(t);
    if (heard === this.#statuses) this.#derive(thread.turns.items);
    this.failed(null); // what may have failed before does not any more
    this.changed();
    if (before) this.settle(); // their turns may be older than the 50 above
  }

  // derive takes the status from the turns' records, for when no event has told it.
  #derive(turns) {
    const open = turns.findLast((t) => !over(t)); // newest first: the last open one is the one at work
    if (open?.status === 'waiting') {
      [this.status, this.activity] = ['idle', 'waiting for a person'];
      return;
    }
    if (open) {
      if (this.status === 'idle' || this.status === 'error') [this.status, this.activity] = ['thinking', open.status === 'queued' ? 'queued' : ''];
      return;
    }
    this.draft = null;
    [this.status, this.activity] = turns[0]?.status === 'failed' ? ['error', turns[0].error] : ['idle', ''];
  }

  #record(t) {
    if (!over(this.turns.get(t.id))) this.turns.set(t.id, t);
  }

  // settle reads the records of the turns that were not over when last seen.
  async settle() {
    this.#unsettled = false;
    const ids = new Set([...this.messages.values()].map((m) => m.turnId).filter((id) => id && !over(this.turns.get(id))));
    await Promise.all([...ids].map(async (id) => this.#record((await graphql(`query ($id: ID!) { turn(id: $id) { ${turn} } }`, { id })).turn)))
      .catch((e) => this.failed(e));
    this.changed();
  }

  #event(e) {
    switch (e.__typename) {
      case 'NewMessageEvent':
        if (this.messages.has(e.message.id)) return;
        this.messages.set(e.message.id, e.message);
        if (e.message.role !== 'assistant') break;
        this.draft = null; // it was this message, or was given up
        this.#unsettled = true;
        break;
      case 'StreamChunkEvent':
        if (this.messages.has(e.messageId)) return;
        if (this.draft?.id !== e.messageId) this.draft = { id: e.messageId, text: '' };
        this.draft.text += e.chunk;
        break;
      case 'AgentStatusEvent':
        this.#statuses++;
        [this.status, this.activity] = [e.status, e.activity ?? ''];
        if (e.status === 'error') this.draft = null;
        if (e.status === 'error' || e.status === 'idle') this.#unsettled = true;
        break;
      case 'ThreadUpdateEvent':
        Object.assign(this.thread ?? {}, e.thread);
        break;
    }
  }
}
