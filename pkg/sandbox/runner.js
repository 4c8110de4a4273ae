// What every sandbox runs a script by, in whatever interpreter: the same globals, the same console, the same outcome.
//
//   request  {code, input?, output}, as JSON text; output is how much it may print and return, which who calls holds to the byte
//   print    takes a line for the console
//   finish   takes the outcome, as JSON text: {status: "ok", value?: JSON text} or {status: "error" | "memory" | "output", error?}
//
// finish is called at most once; never, if the script waits for what nobody settles.
function runner(request, print, finish) {
  "use strict";
  // The script may change all that it can reach, and runs in the same realm: what is needed after its start is kept before.
  const { stringify, parse } = JSON;
  const { min } = Math;
  const text = String;
  const { apply, deleteProperty, ownKeys } = Reflect;
  const { exec } = RegExp.prototype;
  const { slice } = String.prototype;
  const { code, input, output: limit } = parse(request);
  const lines = code.split("\n").length;
  const AsyncFunction = (async () => {}).constructor;

  // Names of ECMAScript 2023. All else that an interpreter has goes.
  const standard = new Set(("globalThis Infinity NaN undefined eval isFinite isNaN parseFloat parseInt decodeURI decodeURIComponent encodeURI encodeURIComponent escape unescape " +
    "AggregateError Array ArrayBuffer BigInt BigInt64Array BigUint64Array Boolean DataView Date Error EvalError FinalizationRegistry Float32Array Float64Array Function " +
    "Int8Array Int16Array Int32Array Map Number Object Promise Proxy RangeError ReferenceError RegExp Set String Symbol SyntaxError TypeError Uint8Array Uint8ClampedArray " +
    "Uint16Array Uint32Array URIError WeakMap WeakRef WeakSet JSON Math Reflect").split(" "));
  for (const name of ownKeys(globalThis)) if (typeof name === "string" && !standard.has(name)) deleteProperty(globalThis, name);

  const property = (v, name) => {
    try {
      return v[name];
    } catch {
      return undefined;
    }
  };
  // Where in the script: a function made from text has two lines before its body. Interpreters name such code each in their own way, and one of them
  // tells of the parser's place too.
  const running = /(?:\(<input>|, <anonymous>):(\d+):\d+\)/, parsing = /^ +at <input>:(\d+)/;
  const line = (e, at = running) => {
    const stack = property(e, "stack"), found = typeof stack === "string" && apply(exec, at, [stack]);
    return found && found[1] > 2 ? " (line " + min(found[1] - 2, lines) + ")" : "";
  };
  const describe = (v, at) => {
    try {
      if (typeof v !== "object" || v === null) return "threw " + apply(slice, show(v), [0, 4000]);
      const name = property(v, "name"), message = property(v, "message");
      if (typeof name !== "string" || typeof message !== "string") return "threw " + apply(slice, show(v), [0, 4000]);
      return apply(slice, name + (message ? ": " + message : ""), [0, 4000]) + line(v, at);
    } catch {
      return "threw something that cannot be shown";
    }
  };
  const show = (v) => {
    if (typeof v === "string") return v;
    if (typeof v === "bigint") return text(v) + "n";
    if (typeof v === "function") return "[function]";
    if (typeof v !== "object" || v === null) return text(v);
    try {
      if (v instanceof Error) return describe(v);
      const json = stringify(v);
      return json === undefined ? "[object]" : json;
    } catch (e) {
      return isMemory(e) ? raise(e) : "[object]";
    }
  };
  const raise = (e) => {
    throw e;
  };
  const memory = /^(?:InternalError: out of memory|InternalError: (?:string too long|invalid string length)|RangeError: (?:Invalid string length|Array buffer allocation failed|invalid array buffer length|Invalid typed array length))/i;
  const isMemory = (e) => {
    const name = property(e, "name"), message = property(e, "message");
    return typeof name === "string" && typeof message === "string" && apply(exec, memory, [name + ": " + message]) !== null;
  };

  const log = (...values) => {
    let out = "";
    for (let i = 0; i < values.length; i++) out += (i ? " " : "") + show(values[i]);
    print((out.length > limit ? apply(slice, out, [0, limit]) : out) + "\n");
  };
  globalThis.console = { log, info: log, debug: log, warn: log, error: log };

  let ended = false;
  const end = (outcome) => {
    if (ended) return;
    ended = true;
    finish(stringify(outcome));
  };
  const fail = (e, at) => end({ __proto__: null, status: isMemory(e) ? "memory" : "error", error: describe(e, at) });
  const done = (value) => {
    let json;
    try {
      json = stringify(value);
    } catch (e) {
      if (isMemory(e)) return fail(e);
      return end({ __proto__: null, status: "error", error: "what the script returned cannot be written as JSON: " + describe(e) });
    }
    end(json !== undefined && json.length > limit ? { __proto__: null, status: "output" } : { __proto__: null, status: "ok", value: json });
  };
  let script;
  try {
    script = new AsyncFunction("input", code);
  } catch (e) {
    return fail(e, parsing);
  }
  (async () => {
    let value;
    try {
      value = await apply(script, undefined, [input]);
    } catch (e) {
      return fail(e);
    }
    done(value);
  })();
}
