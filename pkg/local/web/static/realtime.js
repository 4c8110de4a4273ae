// The AppSync real-time protocol: one socket that carries all subscriptions, comes back by itself and then starts them again. What was
// published meanwhile is not sent, so whoever subscribes reads it at every start (follow.js).
import { renew, token } from './session.js';

// realtime opens the socket; says is told 'live', 'connecting' or 'waiting'.
export function realtime(says) {
  const wanted = new Map(); // id -> subscription
  let socket = null, tries = 0, retry = 0, silence = 0, patience = 300_000, expired = false, closed = false;

  const header = async () => ({ Authorization: await token(), host: location.host });
  const send = (message) => socket?.readyState === WebSocket.OPEN && socket.send(JSON.stringify(message));

  async function connect() {
    says('connecting');
    try {
      if (expired) await renew();
      expired = false;
      const encoded = btoa(JSON.stringify(await header())).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
      if (closed) return;
      const scheme = location.protocol === 'https:' ? 'wss' : 'ws';
      socket = new WebSocket(`${scheme}://${location.host}/graphql/realtime`, ['graphql-ws', 'header-' + encoded]);
      socket.onopen = () => send({ type: 'connection_init' });
      socket.onmessage = (e) => receive(JSON.parse(e.data));
      socket.onclose = (e) => {
        expired ||= e.code === 4401;
        again();
      };
      listen();
    } catch {
      again(); // no token for now; a session that is over closes this
    }
  }

  function again() {
    clearTimeout(silence);
    socket = null;
    if (closed) return;
    says('waiting');
    retry = setTimeout(connect, Math.min(30_000, 500 * 2 ** tries++) * (0.5 + Math.random() / 2));
  }

  function listen() { // gives up a socket that has been silent for longer than the server promised
    clearTimeout(silence);
    silence = setTimeout(() => socket?.close(), patience);
  }

  async function start(id) {
    const { query, variables } = wanted.get(id);
    const on = socket;
    const authorization = await header().catch(() => null);
    if (!authorization || !wanted.has(id) || socket !== on) return; // a new socket starts all by itself
    send({ id, type: 'start', payload: { data: JSON.stringify({ query, variables }), extensions: { authorization } } });
  }

  function receive({ id, type, payload }) {
    listen();
    const subscription = wanted.get(id);
    if (type === 'connection_ack') {
      [patience, tries, socket.ready] = [payload?.connectionTimeoutMs ?? patience, 0, true];
      says('live');
      [...wanted.keys()].forEach(start);
    } else if (type === 'start_ack') {
      subscription?.started();
    } else if (type === 'data' && payload.data) {
      subscription?.data(payload.data);
    } else if (type === 'error' && wanted.delete(id)) {
      subscription.failed(new Error(payload.errors[0].message));
    }
  }

  connect();
  return {
    // subscribe returns what ends the subscription. started comes at every (re)start, data with each event, failed once if it is refused.
    subscribe(query, variables, { started, data, failed }) {
      const id = crypto.randomUUID();
      wanted.set(id, { query, variables, started, data, failed });
      if (socket?.ready) start(id);
      return () => wanted.delete(id) && send({ id, type: 'stop' });
    },
    close() {
      closed = true;
      clearTimeout(retry);
      socket?.close();
    },
  };
}
