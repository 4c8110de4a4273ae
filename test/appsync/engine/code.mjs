// Runs the code of a resolver as the APPSYNC_JS runtime documents it: one ES module with request and response, which imports nothing but
// @aws-appsync/utils and finds nothing of Node.js around it. Both handlers are called with a context of their own, made from JSON, and what they
// return becomes JSON.
import vm from 'node:vm';
import { check, expression } from './filter.mjs';

// What the runtime certainly has of JavaScript's globals.
const globals = ['Object', 'Array', 'String', 'Number', 'Boolean', 'JSON', 'Math', 'NaN', 'Infinity', 'undefined', 'parseInt', 'parseFloat', 'isNaN', 'isFinite',
  'decodeURI', 'decodeURIComponent', 'encodeURI', 'encodeURIComponent'];

// Ended is how util.error leaves a handler; nothing after it runs, and no resolver can catch it: there is no try.
class Ended extends Error {
  constructor(error) {
    super(error.message);
    this.error = error;
  }
}

const problem = (message, errorType = null, data = null, errorInfo = null) => ({ message, errorType, data, errorInfo });

// The one run that is going on: handlers are synchronous.
let run;

const util = {
  error(message, errorType, data, errorInfo) {
    throw new Ended(problem(message, errorType, data, errorInfo));
  },
  appendError(message, errorType, data, errorInfo) {
    run.errors.push(problem(message, errorType, data, errorInfo));
  },
  unauthorized() {
    const { fieldName, parentTypeName } = run.ctx.info;
    throw new Ended(problem(`Not Authorized to access ${fieldName} on type ${parentTypeName}`, 'Unauthorized'));
  },
  transform: { toSubscriptionFilter: expression },
};

const extensions = {
  setSubscriptionFilter(filter) {
    const wrong = run.step !== 'response' || run.ctx.info.parentTypeName !== 'Subscription' ? 'only the response of a subscription sets a filter' : check(filter);
    if (wrong !== '') throw new Ended(problem(wrong, 'SubscriptionFilter'));
    run.filter = JSON.parse(JSON.stringify(filter));
  },
};

// compile gives run(step, ctx) → {value, error, errors, filter}: error ended the handler, errors were appended to the answer.
export async function compile(text, name) {
  const context = vm.createContext({}, { codeGeneration: { strings: false, wasm: false } });
  vm.runInContext(`((g) => Object.getOwnPropertyNames(g).forEach((name) => ${JSON.stringify(globals)}.includes(name) || delete g[name]))(globalThis)`, context);
  const parse = vm.runInContext('JSON.parse', context);
  const module = new vm.SourceTextModule(text, { context, identifier: name });
  await module.link((specifier) => {
    if (specifier !== '@aws-appsync/utils') throw new Error(`${name} imports ${specifier}: the runtime has no such module`);
    return new vm.SyntheticModule(['util', 'extensions'], function () {
      this.setExport('util', util);
      this.setExport('extensions', extensions);
    }, { context });
  });
  await module.evaluate();

  return (step, ctx) => {
    run = { step, ctx, errors: [], filter: null };
    try {
      const value = module.namespace[step](parse(JSON.stringify(ctx)));
      return { value: JSON.parse(JSON.stringify(value ?? null)), error: null, errors: run.errors, filter: run.filter };
    } catch (e) {
      const error = e instanceof Ended ? e.error : problem('Runtime Error', 'Code', null, String(e));
      return { value: null, error, errors: run.errors, filter: null };
    }
  };
}
