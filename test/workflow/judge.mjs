// Judges definitions by asl-validator: reads a JSON array of them, and writes one of what is wrong with each, "" being nothing.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

// asl-validator makes its schemas' validator anew for each definition, which takes nearly all of its time: it is given the first one again.
const ajv = createRequire(import.meta.url)("ajv");
const Ajv = ajv.default;
let first;
ajv.default = function (options) {
  if (first) first.addKeyword = () => first; // it has them
  return (first ??= new Ajv(options));
};
const { default: validate } = await import("asl-validator");

function judge(definition) {
  try {
    return validate(definition).errorsText();
  } catch (refused) {
    if (refused instanceof TypeError) return String(refused); // what it cannot even look at
    throw refused;
  }
}

console.log(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(judge)));
