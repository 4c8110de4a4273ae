// Plays an AppSync API over one SDL: graphql-js executes, unit resolvers run their code around a data source, and what a publish mutation answers
// goes to the subscriptions that its field feeds. What AWS documents and matters to resolvers is here; the rest of AppSync is not.
import { GraphQLError, Kind, buildSchema, execute, getDirectiveValues, parse, print, validate } from 'graphql';
import { compile } from './code.mjs';
import { matches } from './filter.mjs';

const batchSize = 100; // of the resolvers with BatchInvoke

const fault = (message, errorType, errorInfo = null) => new GraphQLError(message, { extensions: { errorType, errorInfo } });

export class Api {
  #subscriptions = new Map();

  // rows: Type.field → the function behind it; publishing: mutations with the publish resolver. invoke(function, payload) calls a function.
  static async start({ sdl, prelude, resolver, publish, rows, publishing, env }, invoke) {
    const api = new Api();
    api.schema = buildSchema(`${prelude}\n${sdl}`);
    Object.assign(api.schema.getType('AWSJSON'), json);
    Object.assign(api, { rows, publishing, env, invoke, resolver: await compile(resolver, 'resolver.js'), publish: await compile(publish, 'publish.js') });
    return api;
  }

  // execute answers a query or mutation; delivered is what each subscription receives of it.
  async execute(request, caller) {
    const { response, document } = await this.#run(request, caller);
    const delivered = [];
    const operation = document && operationOf(document, request.operationName);
    if (operation?.operation === 'mutation' && response.data) {
      for (const { name } of operation.selectionSet.selections) {
        if (this.publishing.includes(name.value)) delivered.push(...(await this.#deliver(name.value, response.data[name.value])));
      }
    }
    return { response, delivered };
  }

  // subscribe registers one, unless its resolver refuses.
  async subscribe(request, caller, name) {
    const { response, document, filter } = await this.#run(request, caller);
    if (response.errors) return { response };
    const operation = operationOf(document, request.operationName);
    const [root] = operation.selectionSet.selections;
    const field = this.schema.getSubscriptionType().getFields()[root.name.value];
    const { mutations } = getDirectiveValues(this.schema.getDirective('aws_subscribe'), field.astNode);
    this.#subscriptions.set(name, { request, caller, document, field: root.name.value, mutations, filter, args: this.#arguments(field, root, request.variables) });
    return { response, filter };
  }

  // A subscription gets what the mutation selected, under the names it was selected by, and no resolver runs again.
  async #deliver(mutation, event) {
    const delivered = [];
    for (const [name, s] of this.#subscriptions) {
      if (event === null || !s.mutations.includes(mutation)) continue;
      if (s.filter ? !matches(s.filter, event) : !Object.entries(s.args).every(([arg, value]) => event[arg] === value)) continue;
      const { response } = await this.#run(s.request, s.caller, { [s.field]: event });
      delivered.push({ subscription: name, response });
    }
    return delivered;
  }

  #arguments(field, node, variables) {
    const given = Object.fromEntries(node.arguments.map((a) => [a.name.value, a.value]));
    return Object.fromEntries(field.args.filter((a) => given[a.name]).map((a) => [a.name, given[a.name].kind === Kind.VARIABLE ? variables[given[a.name].name.value] : given[a.name].value]));
  }

  async #run({ query, variables = {}, operationName }, caller, event) {
    let document;
    try {
      document = parse(query);
    } catch (e) {
      return { response: { data: null, errors: [shown(e)] } };
    }
    const invalid = validate(this.schema, document);
    if (invalid.length > 0) return { response: { data: null, errors: invalid.map(shown) } };
    const request = { caller, variables, errors: [], batches: new Map(), filter: null };
    const result = await execute({
      schema: this.schema, document, rootValue: event, variableValues: variables, operationName, contextValue: request,
      fieldResolver: (source, args, _, info) => (event ? source?.[info.fieldName] : this.#field(request, source, args, info)),
      typeResolver: (value) => value.__typename,
    });
    const errors = [...(result.errors ?? []).map(shown), ...request.errors];
    return { response: { data: result.data ?? null, ...(errors.length > 0 && { errors }) }, document, filter: request.filter };
  }

  async #field(request, source, args, info) {
    this.#authorize(request, info);
    const at = `${info.parentType.name}.${info.fieldName}`;
    const code = Object.hasOwn(this.rows, at) ? this.resolver : info.parentType.name === 'Mutation' && this.publishing.includes(info.fieldName) ? this.publish : null;
    return code ? this.#unit(code, this.rows[at], request, source, args, info) : (source?.[info.fieldName] ?? null);
  }

  // Without a directive a field is for users alone; a type's directive is for all its fields.
  #authorize({ caller }, info) {
    const allowed = (node) => ['aws_iam', 'aws_cognito_user_pools'].filter((name) => node.directives.some((d) => d.name.value === name));
    const own = allowed(info.parentType.getFields()[info.fieldName].astNode);
    const modes = own.length > 0 ? own : allowed(info.parentType.astNode);
    const [mode, groups] = caller.claims ? ['aws_cognito_user_pools', modes] : ['aws_iam', modes];
    if (modes.length === 0 ? mode === 'aws_iam' : !groups.includes(mode)) {
      throw fault(`Not Authorized to access ${info.fieldName} on type ${info.parentType.name}`, 'Unauthorized');
    }
  }

  async #unit(code, fn, request, source, args, info) {
    const { caller } = request;
    const ctx = {
      env: this.env, args, arguments: args, source: source ?? null, stash: {}, prev: null,
      identity: caller.claims ? { claims: caller.claims, sub: caller.claims.sub, sourceIp: ['192.0.2.1'], defaultAuthStrategy: 'ALLOW' } : { userArn: 'arn:aws:sts::123456789012:assumed-role/platform/function', accountId: '123456789012' },
      request: { headers: { host: 'example.appsync-api.us-east-1.amazonaws.com', 'x-amzn-requestid': caller.requestId }, domainName: null },
      info: { fieldName: info.fieldName, parentTypeName: info.parentType.name, variables: request.variables, selectionSetGraphQL: print(info.fieldNodes[0]), selectionSetList: [] },
    };
    const asked = this.#step(code, 'request', ctx, request, info);
    const outcome = {};
    try {
      outcome.result = fn === undefined ? (asked.payload ?? null) : await this.#lambda(fn, asked, request, info);
    } catch (e) {
      outcome.error = { message: e.message, type: e.type ?? 'Lambda:Unhandled' };
      outcome.result = null;
    }
    return this.#step(code, 'response', { ...ctx, ...outcome }, request, info);
  }

  #step(code, step, ctx, request, info) {
    const { value, error, errors, filter } = code(step, ctx);
    for (const e of errors) request.errors.push({ ...e, path: pathOf(info), locations: [] });
    if (error) throw fault(error.message, error.errorType, error.errorInfo);
    if (filter) request.filter = filter;
    return value;
  }

  // BatchInvoke collects the payloads of one place of the request and sends them as a list, whose answer must be a list of the same length.
  #lambda(fn, { operation, payload }, request, info) {
    if (operation === 'Invoke') return this.invoke(fn, payload);
    if (operation !== 'BatchInvoke') throw Object.assign(new Error(`Unsupported operation '${operation}'`), { type: 'MappingTemplate' });
    const place = pathOf(info).filter((step) => typeof step === 'string').join('.');
    if (!request.batches.has(place)) {
      const waiting = [];
      request.batches.set(place, waiting);
      setImmediate(async () => {
        request.batches.delete(place);
        while (waiting.length > 0) await this.#batch(fn, waiting.splice(0, batchSize));
      });
    }
    return new Promise((resolve, reject) => request.batches.get(place).push({ payload, resolve, reject }));
  }

  async #batch(fn, items) {
    try {
      const results = await this.invoke(fn, items.map((item) => item.payload));
      if (!Array.isArray(results) || results.length !== items.length) {
        throw Object.assign(new Error(`The list that the function answered does not have the batch's length of ${items.length}`), { type: 'Lambda:IllegalArgument' });
      }
      items.forEach((item, i) => item.resolve(results[i]));
    } catch (e) {
      items.forEach((item) => item.reject(e));
    }
  }
}

// An AWSJSON argument is a text that resolvers get read; a result is a JSON text, or a value that becomes one.
const json = {
  parseValue(text) {
    if (typeof text !== 'string') throw new GraphQLError('AWSJSON is a string');
    return JSON.parse(text);
  },
  parseLiteral: (node) => json.parseValue(node.value),
  serialize(value) {
    if (typeof value !== 'string') return JSON.stringify(value);
    JSON.parse(value);
    return value;
  },
};

const operationOf = (document, name) => document.definitions.find((d) => d.kind === Kind.OPERATION_DEFINITION && (!name || d.name?.value === name));

function pathOf(info) {
  const steps = [];
  for (let at = info.path; at; at = at.prev) steps.unshift(at.key);
  return steps;
}

const shown = (e) => ({ message: e.message, errorType: e.extensions?.errorType ?? null, errorInfo: e.extensions?.errorInfo ?? null, path: e.path ?? [], locations: e.locations ?? [] });
