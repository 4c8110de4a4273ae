// The AppSync resolver of the publish mutations (APPSYNC_JS, unit resolver, NONE data source): what goes in comes out, and AppSync hands it to the
// subscribers whose filter fits.
//
// AppSync gives an AWSJSON argument as a value; a text would be read. The event names its type: __typename.
export function request(ctx) {
  const event = ctx.args.event;
  return { payload: typeof event === 'string' ? JSON.parse(event) : event };
}

export function response(ctx) {
  return ctx.result;
}
