// The one AppSync resolver (APPSYNC_JS, unit resolver): every field with a row in ../routes.json uses it.
//
// It sends the function a handler.Event and turns its answer {data} or {errorType, message} into a result or a typed error: a plain direct
// Lambda resolver would report every error as Lambda:Unhandled. On a subscription the answered data is the filter of its events.
// BATCH_FIELDS, an environment variable of the API, names the rows with "batch", comma-separated: Type.field,Type.field. Terraform cannot set one
// and puts the text in its place.
import { util, extensions } from '@aws-appsync/utils';

export function request(ctx) {
  const field = `${ctx.info.parentTypeName}.${ctx.info.fieldName}`;
  return {
    operation: ctx.env.BATCH_FIELDS.split(',').includes(field) ? 'BatchInvoke' : 'Invoke',
    payload: {
      field,
      arguments: written(field, ctx.args),
      source: ctx.source,
      claims: ctx.identity.claims,
      requestId: requestId(ctx),
    },
  };
}

export function response(ctx) {
  const answer = ctx.result;
  if (ctx.error || !answer) {
    failed(ctx);
  }
  if (answer.errorType) {
    util.error(answer.message, answer.errorType);
  }
  if (ctx.info.parentTypeName === 'Subscription') {
    const wanted = answer.data || {};
    const filter = {};
    Object.keys(wanted).forEach((name) => {
      filter[name] = { eq: wanted[name] };
    });
    if (Object.keys(filter).length === 0) {
      failed(ctx); // without a filter it would hear every tenant
    }
    extensions.setSubscriptionFilter(util.transform.toSubscriptionFilter(filter));
    return null;
  }
  return answer.data;
}

// AppSync reads an AWSJSON argument, functions take its text. These are all: what a routine is started with; and of an input its metadata, definition,
// input and config, the metadata of its cases, and the schema of its evaluators and of a loop's goal.
function written(field, args) {
  if (field === 'Mutation.startRoutine') {
    return withText(args, 'input');
  }
  if (!args.input) {
    return args;
  }
  const input = ['metadata', 'definition', 'input', 'config'].reduce(withText, args.input);
  if (input.cases) {
    input.cases = input.cases.map((c) => withText(c, 'metadata'));
  }
  if (input.evaluators) {
    input.evaluators = input.evaluators.map((e) => withText(e, 'schema'));
  }
  if (input.loop && input.loop.goal) {
    input.loop = { ...input.loop, goal: input.loop.goal.map((e) => withText(e, 'schema')) };
  }
  return { ...args, input };
}

function withText(object, name) {
  const value = object[name];
  if (value === undefined || value === null || typeof value === 'string') {
    return { ...object };
  }
  return { ...object, [name]: JSON.stringify(value) };
}

// The cause is in the function's log, under the same id.
function failed(ctx) {
  util.error(`internal error (request ${requestId(ctx)})`, 'InternalError');
}

function requestId(ctx) {
  return ctx.request.headers['x-amzn-requestid'];
}
