// Answers requests with graphql-js: the oracle of oracle_test.go, which writes the job to stdin and reads the answers from stdout.
// Started in test/e2e, where npm has installed graphql.
//
// job:     {"worlds": [{"sdl", "functions": {"Type.field": function}}], "requests": [request]}
// request: {"world": n, "query", "operationName"?, "variables"?, "event"?}: with an event, the value of a subscription's root field
// answer:  {"refused": "why"} for a request that does not validate, else the response as text
// function: {"key": "source.id" | "args.id" | "", "cases": {value: answer}, "else": answer, "echo": bool}; answer: {data} | {errorType, message}
import { createRequire } from 'node:module'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const require = createRequire(join(process.cwd(), 'package.json'))
const { buildSchema, parse, validate, execute, GraphQLError, Kind } = require('graphql')
const { inspect } = require('graphql/jsutils/inspect.js')

class Fault extends Error {
  constructor (type, message) {
    super(message)
    this.errorType = type
  }
}

function resolver (spec) {
  return (source, args) => {
    if (spec.echo) return JSON.stringify(args)
    const [from, member] = (spec.key || '').split('.')
    const key = from === 'source' ? source?.[member] : from === 'args' ? args[member] : undefined
    const answer = (spec.cases && spec.cases[key]) || spec.else
    if (answer.errorType) throw new Fault(answer.errorType, answer.message)
    return answer.data
  }
}

// scalar gives a scalar of AppSync its checks, as scalars.go has them.
function scalar (type, want, valid) {
  if (!type) return
  const check = (value) => {
    if (typeof value === 'string' && valid(value)) return value
    throw new GraphQLError(`${type.name} cannot represent value: ${inspect(value)}, want ${want}.`)
  }
  type.parseValue = check
  type.parseLiteral = (node) => check(node.kind === Kind.STRING ? node.value : undefined)
  type.serialize = (value) => {
    if (typeof value === 'string') return value
    if (type.name === 'AWSJSON') return JSON.stringify(value)
    throw new GraphQLError(`${type.name} cannot represent value: ${inspect(value)}`)
  }
}

function isJSON (text) {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function build ({ sdl, functions }) {
  const schema = buildSchema(sdl)
  for (const [name, spec] of Object.entries(functions)) {
    const [type, field] = name.split('.')
    schema.getType(type).getFields()[field].resolve = resolver(spec)
  }
  scalar(schema.getType('AWSJSON'), 'a string that holds valid JSON', isJSON)
  scalar(schema.getType('AWSDate'), 'a date like 2006-01-02 with an optional offset', (s) => /^\d{4}-\d\d-\d\d$/.test(s))
  scalar(schema.getType('AWSDateTime'), 'a date and time like 2006-01-02T15:04:05.999Z', (s) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/.test(s))
  scalar(schema.getType('AWSURL'), 'an absolute URL', (s) => /^[a-z]+:\/\/./.test(s))
  scalar(schema.getType('AWSEmail'), 'an e-mail address', (s) => /^[a-z]+@[a-z.]+$/.test(s))
  return schema
}

function errorType (error, began) {
  if (error.originalError instanceof Fault) return error.originalError.errorType
  return !began || error.message.startsWith('Argument "') ? 'ValidationError' : 'InternalError'
}

function answer (schema, { query, operationName, variables, event }) {
  let document
  try {
    document = parse(query)
  } catch (error) {
    return { refused: error.message }
  }
  const problems = validate(schema, document)
  if (problems.length > 0) return { refused: problems[0].message }
  let rootValue
  if (event !== undefined) {
    const fields = Object.keys(schema.getSubscriptionType().getFields())
    rootValue = Object.fromEntries(fields.map((name) => [name, event]))
  }
  const result = execute({ schema, document, operationName, variableValues: variables, rootValue, hideSuggestions: true })
  const response = {}
  // A subscription whose arguments are wrong is refused before there is an event.
  const refused = event !== undefined && result.errors?.[0].path?.length === 1 && result.errors[0].message.startsWith('Argument "')
  if (result.data !== undefined && !refused) response.data = result.data
  if (result.errors) {
    response.errors = result.errors.map((e) => ({
      message: e.message,
      errorType: errorType(e, result.data !== undefined),
      locations: e.locations ?? [],
      path: e.path ?? []
    }))
  }
  return JSON.stringify(response)
}

const job = JSON.parse(readFileSync(0, 'utf8'))
const schemas = job.worlds.map(build)
writeFileSync(1, JSON.stringify(job.requests.map((r) => answer(schemas[r.world], r))))
