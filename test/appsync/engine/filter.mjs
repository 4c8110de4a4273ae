// Subscription filters as AWS documents them: what a filter may be (util.transform.toSubscriptionFilter makes one, extensions.setSubscriptionFilter
// takes one) and which events it lets through. A filter is {filterGroup: [{filters: [{fieldName, operator, value}]}]}: one group of
// the list must hold, and a group holds when all its filters do.

const scalar = (v) => typeof v === 'string' || typeof v === 'number' || typeof v === 'boolean';
const ordered = (v) => typeof v === 'string' || typeof v === 'number';
const listOf = (most) => (v) => Array.isArray(v) && v.length > 0 && v.length <= most && v.every(ordered);

// accepts: the value an operator takes. holds: whether an event's value (null when it has none) passes.
const operators = {
  eq: { accepts: scalar, holds: (got, want) => got === want },
  ne: { accepts: scalar, holds: (got, want) => got !== want },
  le: { accepts: ordered, holds: (got, want) => got !== null && got <= want },
  lt: { accepts: ordered, holds: (got, want) => got !== null && got < want },
  ge: { accepts: ordered, holds: (got, want) => got !== null && got >= want },
  gt: { accepts: ordered, holds: (got, want) => got !== null && got > want },
  contains: { accepts: ordered, holds: (got, want) => got !== null && got.includes(want) },
  notContains: { accepts: ordered, holds: (got, want) => got === null || !got.includes(want) },
  beginsWith: { accepts: (v) => typeof v === 'string', holds: (got, want) => typeof got === 'string' && got.startsWith(want) },
  in: { accepts: listOf(5), holds: (got, want) => want.includes(got) },
  notIn: { accepts: listOf(5), holds: (got, want) => !want.includes(got) },
  between: { accepts: (v) => listOf(2)(v) && v.length === 2, holds: (got, want) => got !== null && got >= want[0] && got <= want[1] },
  containsAny: { accepts: listOf(20), holds: (got, want) => Array.isArray(got) && got.some((v) => want.includes(v)) },
};

const limits = { groups: 10, filters: 10, depth: 5, name: 256 };

// check says what is wrong with a filter, or ''.
export function check(filter) {
  const groups = filter?.filterGroup;
  if (!Array.isArray(groups) || groups.length === 0) return 'a filter needs a filterGroup with at least one group';
  if (groups.length > limits.groups) return `a filterGroup has at most ${limits.groups} groups`;
  for (const { filters } of groups) {
    if (!Array.isArray(filters) || filters.length === 0) return 'a group needs at least one filter';
    if (filters.length > limits.filters) return `a group has at most ${limits.filters} filters`;
    for (const { fieldName, operator, value, ...rest } of filters) {
      if (Object.keys(rest).length > 0) return `a filter has no ${Object.keys(rest)[0]}`;
      if (typeof fieldName !== 'string' || fieldName === '' || fieldName.length > limits.name) return `a field's name has 1 to ${limits.name} characters`;
      if (fieldName.split('.').length > limits.depth) return `a field is at most ${limits.depth} levels deep`;
      if (!Object.hasOwn(operators, operator)) return `there is no operator ${operator}`;
      if (!operators[operator].accepts(value)) return `${operator} does not take ${JSON.stringify(value)}`;
    }
  }
  return '';
}

// matches says whether an event passes; a dot in a field's name goes into an object.
export function matches(filter, event) {
  const value = (name) => name.split('.').reduce((at, member) => at?.[member], event) ?? null;
  return filter.filterGroup.some(({ filters }) => filters.every(({ fieldName, operator, value: want }) => operators[operator].holds(value(fieldName), want)));
}

// expression makes a filter of {field: {operator: value}, and: […], or: […]}: what stands side by side must all hold. Rules are alternatives of
// which one must hold besides; ignored fields are left out.
export function expression(object, ignored = [], rules = {}) {
  let groups = conjunction(object, ignored);
  const alternatives = Object.entries(rules).flatMap(([name, tests]) => conjunction({ [name]: tests }, []));
  if (alternatives.length > 0) groups = product(groups, alternatives);
  return { filterGroup: groups.filter((g) => g.length > 0).map((filters) => ({ filters })) };
}

// A list of groups, each a list of filters; [[]] holds always.
const product = (a, b) => a.flatMap((x) => b.map((y) => [...x, ...y]));

function conjunction(object, ignored) {
  let groups = [[]];
  for (const [name, tests] of Object.entries(object)) {
    if (ignored.includes(name)) continue;
    if (name === 'and') for (const part of tests) groups = product(groups, conjunction(part, ignored));
    else if (name === 'or') groups = product(groups, tests.flatMap((part) => conjunction(part, ignored)));
    else groups = product(groups, [Object.entries(tests).map(([operator, value]) => ({ fieldName: name, operator, value }))]);
  }
  return groups;
}
