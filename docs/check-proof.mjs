// Checks a proof file of the audit log without the platform: Node 20 or newer and its standard library, nothing else.
//
//   node check-proof.mjs FILE... --public-key KEY.pem [--origin NAME]
//
// Exit 0: every proof holds. 1: one does not; the word after "refused" is the reason, the same that `audit-verifier check`
// gives. 2: one could not be checked (usage, an unreadable file or key). Lines of witnesses on the checkpoint are not
// looked at here. The format of the file: `go doc ./pkg/audit/anchor Proof`.
import { createHash, createPublicKey, verify } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'

class Refused extends Error {}
const must = (holds, reason, detail) => { if (!holds) throw new Refused(`${reason}: ${detail}`) }
const form = (holds, detail) => must(holds, 'form', detail)

const sha256 = (...parts) => parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest()
const leafHash = (...parts) => sha256(Buffer.of(0), ...parts)
const nodeHash = (left, right) => sha256(Buffer.of(1), left, right)

const isText = (v, pattern) => typeof v === 'string' && pattern.test(v)
const isTime = (v) => isText(v, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
const isWindow = (v) => hasMembers(v, 'from,to') && isTime(v.from) && isTime(v.to)
const isObject = (v) => v !== null && typeof v === 'object' && !Array.isArray(v)
const hasMembers = (v, names) => isObject(v) && Object.keys(v).join() === names

// The one text of a value: RFC 8785, restricted to integers. JavaScript writes strings as that standard asks.
function canonical(v, depth = 0) {
  if (typeof v === 'number') form(Number.isSafeInteger(v), 'a number that is no integer')
  if (typeof v === 'string') form(v.isWellFormed(), 'a lone surrogate')
  if (v === null || typeof v !== 'object') return JSON.stringify(v)
  form(depth < 65, 'too deep') // 64 for the event, and the file around it
  if (Array.isArray(v)) return `[${v.map((item) => canonical(item, depth + 1)).join()}]`
  const member = (name) => `${canonical(name)}:${canonical(v[name], depth + 1)}`
  return `{${Object.keys(v).sort().map(member).join()}}` // sorted by UTF-16 code units
}

// The value of a text that is canonical, byte for byte; an editor may have added a line end.
function parse(bytes) {
  let text, value
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes).replace(/\n$/, '')
    value = JSON.parse(text)
  } catch { form(false, 'not JSON in UTF-8') }
  form(canonical(value) === text, 'not the canonical form')
  return value
}

function base64(text) {
  const bytes = Buffer.from(String(text), 'base64')
  form(bytes.toString('base64') === text, 'not base64')
  return bytes
}

function hashes(text) {
  const parts = base64(text).toString('hex').match(/.{1,64}/g) ?? []
  form(parts.every((hash) => hash.length === 64), 'not whole hashes')
  return parts.map((hash) => Buffer.from(hash, 'hex'))
}

// A signed note (c2sp.org/signed-note) with the text of a checkpoint (c2sp.org/tlog-checkpoint).
function parseNote(note) {
  form(isText(note, /^[^{\n].*\n[1-9]\d{0,11}\n.{44}\n\n(— \S+ \S+\n)+$/u), 'not a signed checkpoint')
  const [body, lines] = note.split('\n\n')
  const [origin, size, root] = body.split('\n')
  const signatures = lines.trimEnd().split('\n').map((line) => {
    const [, name, signature] = line.split(' ')
    form(base64(signature).length > 4, 'not a signature')
    return { name, id: base64(signature).subarray(0, 4), bytes: base64(signature).subarray(4) }
  })
  form([origin, ...signatures.map((s) => s.name)].every((name) => isText(name, /^[^\s+\p{Cc}]+$/u)), 'not a name')
  return { body: `${body}\n`, origin, size: Number(size), root: base64(root), signatures }
}

// One line at least must be of the key, under the name of the log; whatever is of the key must be right.
function checkSignature(note, key) {
  const id = sha256(key.export({ type: 'spki', format: 'der' })).subarray(0, 4)
  const ours = note.signatures.filter((s) => s.name === note.origin && s.id.equals(id))
  must(ours.length > 0, 'signature', 'the key did not sign the checkpoint')
  must(ours.every((s) => verify('sha256', Buffer.from(note.body), key, s.bytes)), 'signature', 'it is wrong')
}

// The root to which path leads from a leaf. It takes what it needs from the front of path.
function climb(node, index, size, path) {
  for (let last = size - 1; last > 0; index = Math.floor(index / 2), last = Math.floor(last / 2)) {
    if (index % 2 === 0 && index === last) continue // it has no sibling on this level
    form(path.length > 0, 'a path is too short')
    node = index % 2 === 1 ? nodeHash(path.shift(), node) : nodeHash(node, path.shift())
  }
  return node
}

function check(bytes, key, wantOrigin) {
  form(bytes.length <= 4 << 20, 'too long')
  const proof = parse(bytes)
  form(hasMembers(proof, 'checkpoint,event,hashes,header,index,length,paths,position,proof'), 'not the members of a proof')
  const { event, index, length, position } = proof
  const { backfill, ...header } = proof.header ?? {}
  form(proof.proof === 'agentplatform/1', 'another kind of proof')
  form(hasMembers(header, 'cadence,events,recorded_at,tenant_count,window'), 'not the members of a header')
  form([header.window, backfill].every((w) => w === undefined || isWindow(w)) && isTime(header.recorded_at), 'not a time')
  const counts = [index, length, position, header.cadence, header.events, header.tenant_count]
  form(counts.every((n) => Number.isSafeInteger(n) && n >= 0), 'not a count')
  form(position >= 1 && position <= length && index < header.tenant_count, 'a place that is none')
  form(isObject(event), 'the event is no object')
  const note = parseNote(proof.checkpoint)

  const given = hashes(proof.hashes), path = hashes(proof.paths)
  form(given.length === 6 - (position === 1) - (note.size === 1), 'not as many hashes as it takes')
  const prev = position === 1 ? 'GENESIS' : given.shift().toString('hex')
  const [head, merkleRoot] = given.splice(0, 2)
  const previous = note.size === 1 ? 'GENESIS' : given.shift().toString('hex')
  const [proofRoot, tenantsHash] = given

  // The event leads to its tenant's tree, that to the tree of all tenants, that is in the header, that is in the log.
  must(isText(event.event_id, /./s) && isText(event.event_type, /./s) &&
    isText(event.tenant_id, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/), 'event', 'no id, no type or no tenant')
  const eventHash = sha256(canonical(event), prev)
  const tree = climb(leafHash(eventHash), position - 1, length, path)
  const lengthBytes = Buffer.from(length.toString(16).padStart(16, '0'), 'hex')
  const tenant = leafHash(Buffer.from(event.tenant_id.replaceAll('-', ''), 'hex'), lengthBytes, head, tree)
  const tenants = climb(tenant, index, header.tenant_count, path)
  const leaf = canonical({ ...proof.header, cadence_id: `cadence-${String(note.size).padStart(12, '0')}`,
    merkle_root: merkleRoot.toString('hex'), previous_anchor_sha256: previous, proof_root: proofRoot.toString('hex'),
    schema_version: 1, tenants_sha256: tenantsHash.toString('hex') })
  const log = climb(leafHash(sha256(leaf)), note.size - 1, note.size, path) // it is the last leaf
  form(path.length === 0, 'more hashes than the paths have')
  must(position < length || eventHash.equals(head), 'head', 'the last event of the chain is not its head')
  must(tenants.equals(proofRoot), 'proof_root', "event, position and paths do not lead to the header's proof_root")
  must(log.equals(note.root), 'log_root', "the header does not lead to the checkpoint's root")
  must(!wantOrigin || note.origin === wantOrigin, 'signature', `it is of the log ${note.origin}`)
  checkSignature(note, key)
  return `event ${event.event_id} (${event.event_type}) of tenant ${event.tenant_id}
event hash ${eventHash.toString('hex')}, number ${position} of ${length} in the tenant's chain
anchor ${note.size} of the log ${note.origin}, recorded at ${header.recorded_at}: signed by the key`
}

function failed(what, err) {
  console.log(`${what}: ${err instanceof Refused ? 'refused ' : ''}${err.message}`)
  process.exitCode = Math.max(process.exitCode ?? 0, err instanceof Refused ? 1 : 2)
}
try {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { 'public-key': { type: 'string' }, origin: { type: 'string' } } })
  if (!positionals.length || !values['public-key']) throw new Error('node check-proof.mjs FILE... --public-key KEY.pem [--origin NAME]')
  const key = createPublicKey(readFileSync(values['public-key']))
  if (key.asymmetricKeyDetails?.namedCurve !== 'prime256v1') throw new Error('the key is not an ECDSA key on P-256')
  for (const file of positionals) {
    try { console.log(`${file}: verified\n${check(readFileSync(file), key, values.origin)}`) } catch (err) { failed(file, err) }
  }
} catch (err) { failed('usage', err) }
