// The one AppSync resolver (APPSYNC_JS, unit resolver): every field with a row in ../routes.json uses it.
//
// It sends the function a handler.Event and turns its answer {data} or {errorType, message} into a result or a typed error: a plain direct
// Lambda resolver would report every error as Lambda:Unhandled. On a subscription the answered data is the filter of its events.
// The API's environment variable BATCH_FIELDS names the rows with "batch", comma-separated: Type.field,Type.field.
import { util, extensions } from '@aws-appsync/utils';

export function request(ctx) {
  const field = `${ctx.info.parentTypeName}.${ctx.info.fieldName}`;
  return {
    operation: ctx.env.BATCH_FIELDS.split(',').includes(field) ? 'BatchInvoke' : 'Invoke',
    payload: {
      field,
      arguments: ctx.args,
      source: ctx.source,
      claims: ctx.identity.claims,
      requestId: ctx.request.headers['x-amzn-requestid'],
    },
  };
}

export function response(ctx) {
  if (ctx.error) {
    util.error('internal error', 'InternalError');
  }
  const answer = ctx.result;
  if (answer.errorType) {
    util.error(answer.message, answer.errorType);
  }
  if (ctx.info.parentTypeName === 'Subscription') {
    const filter = {};
    Object.keys(answer.data).forEach((name) => {
      filter[name] = { eq: answer.data[name] };
    });
    extensions.setSubscriptionFilter(util.transform.toSubscriptionFilter(filter));
    return null;
  }
  return answer.data;
}
