// Runs schema/graphql/resolver.js as AppSync would: reads {step: "request"|"response", ctx} a line, writes {value, error, filter} a line.
// What AppSync gives a resolver (util, extensions) is given here with the meaning that its documentation states.
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const state = { filter: undefined };
globalThis.appsync = {
  util: {
    error(message, errorType) {
      throw Object.assign(new Error(message), { errorType });
    },
    transform: { toSubscriptionFilter: (filter) => JSON.stringify(filter) },
  },
  extensions: { setSubscriptionFilter: (filter) => (state.filter = filter) },
};
const source = readFileSync(process.argv[2], 'utf8').replace("import { util, extensions } from '@aws-appsync/utils';", 'const { util, extensions } = globalThis.appsync;');
const resolver = await import('data:text/javascript,' + encodeURIComponent(source));

for await (const line of createInterface({ input: process.stdin })) {
  const { step, ctx } = JSON.parse(line);
  state.filter = undefined;
  const out = {};
  try {
    out.value = resolver[step](ctx);
  } catch (e) {
    out.error = { message: e.message, errorType: e.errorType };
  }
  out.filter = state.filter;
  console.log(JSON.stringify(out));
}
