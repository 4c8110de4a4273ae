// What the service is given to run: an expression whose value is settled when the script has ended. Its console output is what the script printed, then
// the mark, then the outcome as JSON, to the end of the line.
//
//   runner     pkg/sandbox/runner.js
//   request    for the runner, JSON text
//   mark       a text that nobody else knows
//   limits     {milliseconds, mebibytes, bytes}
//   unsettled  the outcome of a script that comes to no end
//
// On Node.js the script has a process of its own, with an empty environment, that ends at the limits. An interpreter without processes runs it in place.
(function (runner, request, mark, limits, unsettled) {
  "use strict";
  const say = console.log;
  const text = String, { stringify } = JSON;

  // The program of that process. The runner is in a context of its own, in which there are no modules.
  const child = (runner, mark, most) => {
    const { readFileSync, writeSync } = require("node:fs"), { exit } = process, { from } = Buffer;
    const write = (text) => {
      for (let bytes = from(text); bytes.length > 0; ) bytes = bytes.subarray(writeSync(1, bytes));
    };
    const finish = (outcome) => {
      write(mark + outcome + "\n");
      exit(0);
    };
    let written = 0;
    process.on("unhandledRejection", () => {}); // the script's own business
    const print = (text) => {
      write(text);
      if ((written += from(text).length) > most) finish('{"status":"output"}');
    };
    require("node:vm").runInNewContext(`(${runner})`)(readFileSync(0, "utf8"), print, finish);
  };

  const apart = ({ spawnSync }) => {
    const source = `(${child})(${stringify(text(runner))}, ${stringify(mark)}, ${limits.bytes})`;
    const run = spawnSync(process.execPath, [`--max-old-space-size=${limits.mebibytes}`, "-e", source], {
      input: request, env: {}, encoding: "utf8", timeout: limits.milliseconds, killSignal: "SIGKILL", maxBuffer: 16 * limits.bytes,
    });
    const code = run.error && run.error.code;
    if (code && code !== "ETIMEDOUT" && code !== "ENOBUFS") return false; // there are no processes to be had
    let outcome = null;
    if (code) outcome = { status: code === "ETIMEDOUT" ? "timeout" : "output" };
    else if (run.signal === "SIGKILL" || /heap out of memory|Allocation failed/.test(run.stderr)) outcome = { status: "memory" };
    else if (run.signal || run.status) outcome = { status: "error", error: run.stderr.slice(0, 4000) };
    else if (!run.stdout.includes(mark)) outcome = unsettled;
    say(run.stdout + (outcome ? mark + stringify(outcome) : ""));
    return true;
  };

  const inPlace = () => new Promise((resolve) => {
    const end = (outcome) => {
      say(mark + outcome);
      resolve();
    };
    let written = 0;
    runner(request, (text) => {
      if (written > limits.bytes) throw new RangeError("too much output");
      say(text.slice(0, -1)); // which ends lines by itself
      if ((written += text.length) > limits.bytes) end('{"status":"output"}');
    }, end);
  });

  return typeof require === "function" && apart(require("node:child_process")) ? undefined : inPlace();
})
