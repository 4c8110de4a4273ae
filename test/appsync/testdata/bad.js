// What the runtime does not take, one rule a piece: the linter must say so of each.
import { util } from '@aws-appsync/utils';

export async function request(ctx) {
  try {
    for (let i = 0; i < 3; i++) {
      if (i === 1) continue;
    }
  } catch (e) {
    await Promise.reject(e);
  }
  while (!ctx.args.id.match(/x/)) {
    'x'.localeCompare('y');
  }
  class Name {}
  return request(ctx) instanceof Name || 'id' in ctx.args;
}

export function response(ctx) {
  ctx = this;
  const call = (f) => f(ctx);
  util.none(call(response));
  return () => ctx;
}
