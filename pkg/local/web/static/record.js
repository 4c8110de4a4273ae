// A turn's durable record, as a line that opens into its phases.
import { duration, h, micros } from './dom.js';

const words = { succeeded: 'Succeeded', failed: 'Failed', interrupted: 'Interrupted' };

// record makes the block of a turn that is over.
export function record(t) {
  const took = t.startedAt && t.finishedAt ? micros(t.finishedAt) - micros(t.startedAt) : undefined;
  const facts = [took !== undefined && duration(took), `${t.inputTokens + t.outputTokens} tokens`, t.costUsd && `$${t.costUsd}`].filter(Boolean);
  const e = h('details', { class: 'record ' + t.status },
    h('summary', null, h('span', { class: 'state' }, words[t.status]), h('span', null, facts.join(' · '))),
    ...(t.phases.length ? [phases(t)] : []),
    ...(t.toolOutcomes.length ? [tools(t.toolOutcomes)] : []),
    h('dl', { class: 'facts' },
      ...fact('Model', t.model ?? 'not called'), ...fact('Tokens', `${t.inputTokens} in, ${t.outputTokens} out`),
      ...fact('Cost', t.costUsd ? `$${t.costUsd}` : 'price not known'), ...fact('Attempts', String(t.attempts)), ...fact('Turn', t.id)));
  e.addEventListener('toggle', () => e.open && e.scrollIntoView({ block: 'nearest' }));
  const why = t.status === 'failed' ? h('p', { class: 'problem' }, `The turn failed: ${t.error ?? 'no reason is recorded'}`) : '';
  return h('div', { class: 'turn' }, why, e);
}

const fact = (name, value) => [h('dt', null, name), h('dd', null, value)];

function phases(t) {
  const first = micros(t.phases[0].startedAt);
  const whole = Math.max(...t.phases.map((p) => micros(p.finishedAt ?? p.startedAt))) - first || 1;
  return h('table', null,
    h('caption', { class: 'unseen' }, 'Phases'),
    h('thead', null, h('tr', null, ...['Phase', 'Began', 'Took', ''].map((name) => h('th', { scope: 'col' }, name)))),
    h('tbody', null, ...t.phases.map((p) => {
      const bar = h('i', { 'aria-hidden': 'true' });
      bar.style.marginLeft = `${(100 * (micros(p.startedAt) - first)) / whole}%`;
      bar.style.width = `${(100 * (p.durationMs ?? 0)) / whole}%`;
      return h('tr', null, h('th', { scope: 'row' }, p.name), h('td', null, `+${duration(micros(p.startedAt) - first)}`),
        h('td', null, p.durationMs == null ? '' : duration(p.durationMs)), h('td', { class: 'bar' }, bar));
    })));
}

function tools(outcomes) {
  return h('table', null,
    h('caption', { class: 'unseen' }, 'Tool calls'),
    h('thead', null, h('tr', null, ...['Tool', 'Outcome', 'Took', ''].map((name) => h('th', { scope: 'col' }, name)))),
    h('tbody', null, ...outcomes.map((o) =>
      h('tr', null, h('th', { scope: 'row' }, o.name), h('td', null, o.status), h('td', null, o.durationMs ? duration(o.durationMs) : '< 1 ms'), h('td', null, o.error ?? '')))));
}
