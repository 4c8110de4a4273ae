// Small tools for the page.
export const $ = (id) => document.getElementById(id);

// h makes an element. Its children become elements or text: what people and models write is never parsed as HTML.
export function h(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) if (value !== undefined && value !== false) e.setAttribute(name, value);
  e.append(...children);
  return e;
}

const shown = new WeakMap(); // parent -> key -> {version, element}

// arrange makes parent's children those of items, [key, version, build] each, and leaves alone what has not changed: focus, selection and
// open details stay, and screen readers are told of what is new only.
export function arrange(parent, items) {
  const kept = shown.get(parent) ?? new Map();
  shown.set(parent, kept);
  const wanted = new Set(items.map(([key]) => key));
  for (const [key, { element }] of kept) {
    if (wanted.has(key)) continue;
    element.remove();
    kept.delete(key);
  }
  let at = parent.firstChild;
  for (const [key, version, build] of items) {
    let entry = kept.get(key);
    if (entry?.version !== version) {
      const element = build();
      if (entry?.element === at) at = element;
      entry?.element.replaceWith(element);
      kept.set(key, entry = { version, element });
    }
    if (entry.element === at) at = at.nextSibling;
    else parent.insertBefore(entry.element, at);
  }
}

// say shows a problem in an alert, or hides it.
export function say(alert, problem) {
  alert.hidden = !problem;
  alert.textContent = problem ?? '';
}

// micros is the time of an AWSDateTime in milliseconds, with its six fractional digits.
export const micros = (iso) => Date.parse(iso.slice(0, 23) + 'Z') + Number('0.' + iso.slice(23, 26));

export function duration(ms) {
  if (ms === 0) return '0 ms';
  if (ms < 10) return `${ms.toFixed(2)} ms`;
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
}

export function ago(iso) {
  const minutes = Math.floor((Date.now() - Date.parse(iso)) / 60_000);
  if (minutes < 1) return 'just now';
  if (minutes < 60) return `${minutes} min ago`;
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h ago`;
  return new Date(iso).toLocaleDateString(undefined, { day: 'numeric', month: 'short', year: 'numeric' });
}

export const clock = (iso) =>
  h('time', { datetime: iso, title: new Date(iso).toLocaleString() }, new Date(iso).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' }));
