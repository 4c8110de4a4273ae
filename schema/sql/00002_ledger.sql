-- The compliance ledger: outbox, chain, heads, anchors, export jobs; and what the audited acts write.
--
-- Who may do what: the application adds to the outbox and reads its own receipts · the ledger (drainer and anchorer) moves outbox rows into
-- the chain and keeps heads and anchors · the reader reads. Chain rows are never changed: neither by grants nor, for whoever has more than
-- those (the owner), by triggers.

set local role agentplatform_owner;

-- ---- What the audited acts write

-- Whoever belongs to a tenant may leave it; messages keep the user's id.
grant delete on users, client_tokens to agentplatform_app;
create index users_by_email on users (tenant_id, email collate "C", id);

create domain governance_file_name as text check (value in ('GUARDRAILS.md', 'CONTEXT.md'));

-- Each edit is a version; the newest counts.
create table governance_files (
  tenant_id  uuid not null,
  space_id   uuid not null,
  file       governance_file_name not null,
  version    integer not null, -- from 1, without gaps
  content    text not null,
  user_id    uuid not null,    -- who wrote it
  created_at timestamptz not null default now(),
  primary key (tenant_id, space_id, file, version),
  foreign key (tenant_id, space_id) references spaces (tenant_id, id)
);
select protect_tenant('governance_files');
grant select, insert on governance_files to agentplatform_app;

create table tool_servers (
  tenant_id  uuid not null references tenants (id),
  id         uuid not null,
  name       text collate "C" not null,
  url        text not null,
  scopes     text[] not null default '{}',
  created_at timestamptz not null default now(),
  primary key (tenant_id, id),
  unique (tenant_id, name)
);
select protect_tenant('tool_servers');
grant select, insert, delete on tool_servers to agentplatform_app;

-- ---- The outbox

create domain outbox_state as text check (value in ('pending', 'drained', 'quarantined'));

-- An audited act, recorded in the transaction that does it. The row stays when the event is in the chain, without its text, so that an
-- event id is never taken twice.
create table audit_outbox (
  tenant_id  uuid not null,
  event_id   uuid not null primary key,
  position   bigint not null generated always as identity, -- taken under the tenant's lock, so in the order of commit
  envelope   text,            -- canonical, without recorded_at; null once drained
  mac        bytea not null,  -- HMAC-SHA256 of the envelope by a key that is not in the database: the receipt
  body_hash  bytea not null,  -- HMAC, by the same key, of the SHA-256 of what the caller said, before redaction
  state      outbox_state not null default 'pending',
  created_at timestamptz not null default clock_timestamp(),
  drained_at timestamptz,     -- or quarantined
  reason     text             -- why it is in quarantine
);
create index audit_outbox_pending on audit_outbox (position) where state = 'pending';
create index audit_outbox_quarantined on audit_outbox (position) where state = 'quarantined';
select protect_tenant('audit_outbox');
create policy ledger on audit_outbox to agentplatform_ledger using (true) with check (true);
create policy reader on audit_outbox for select to agentplatform_reader using (true);
grant insert (tenant_id, event_id, envelope, mac, body_hash), select (tenant_id, event_id, mac, body_hash) on audit_outbox to agentplatform_app;
grant select, update (envelope, state, drained_at, reason) on audit_outbox to agentplatform_ledger;
grant select (tenant_id, event_id, position, mac, state, created_at, drained_at, reason) on audit_outbox to agentplatform_reader;

create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception '% is append-only', tg_table_name using errcode = 'insufficient_privilege';
end $$;
-- A row stays when its event is in the chain: an event id is taken for ever.
create trigger kept before delete or truncate on audit_outbox for each statement execute function refuse_change();

-- ---- The chain

-- One truth: what is hashed is the canonical text; the other columns are for finding, order and constraints, and the verifier holds each
-- to the text.
drop table audit_events;
create table audit_events (
  tenant_id      uuid not null, -- without a foreign key: each row would lock its tenant's, and a chain outlives what it tells of
  chain_position bigint not null check (chain_position >= 1),
  event_id       uuid not null,
  occurred_at    timestamptz not null,
  recorded_at    timestamptz not null,
  actor          text collate "C" not null,
  event_type     text collate "C" not null,
  event_hash     text collate "C" not null check (octet_length(event_hash) = 64),
  prev_hash      text collate "C" not null check (octet_length(prev_hash) = 64 or prev_hash = 'GENESIS'),
  cadence        bigint not null, -- the number of the anchor that covers it first
  canonical      text not null,   -- the envelope, to the byte
  primary key (tenant_id, chain_position),
  constraint audit_events_event_id unique (event_id),
  constraint audit_events_event_hash unique (event_hash),
  constraint audit_events_prev_hash unique (tenant_id, prev_hash) -- no fork, and one GENESIS a tenant
);
create index audit_events_by_time on audit_events (occurred_at desc, event_id desc);
select protect_tenant('audit_events');
create policy ledger on audit_events to agentplatform_ledger using (true) with check (true);
create policy reader on audit_events for select to agentplatform_reader using (true);
grant select, insert on audit_events to agentplatform_ledger;
grant select on audit_events to agentplatform_reader;

create trigger append_only before update or delete or truncate on audit_events for each statement execute function refuse_change();

-- The last event of each tenant's chain, as the drainer left it.
create table audit_heads (
  tenant_id   uuid not null primary key,
  length      bigint not null check (length >= 1),
  event_hash  text collate "C" not null,
  recorded_at timestamptz not null,
  beaconed    bigint not null default 0 check (beaconed >= 0) -- the length that the newest beacon tells
);
create index audit_heads_unbeaconed on audit_heads (tenant_id) where length > beaconed;
select protect_tenant('audit_heads');

-- The same, as of the newest published anchor, with the state of the tenant's side tree.
create table audit_anchored_heads (
  tenant_id  uuid not null primary key,
  length     bigint not null check (length >= 1),
  event_hash text collate "C" not null,
  tree       bytea not null, -- compact range over the event hashes
  tree_root  bytea not null, -- its root
  cadence    bigint not null check (cadence >= 1) -- in which it last moved
);
select protect_tenant('audit_anchored_heads');

-- One row a cadence, written when it is closed; the rest is known once its anchor is published.
create table audit_anchors (
  number        bigint primary key check (number >= 1),
  seconds       integer not null, -- of the cadence
  window_from   timestamptz not null,
  window_to     timestamptz not null,
  backfill_from timestamptz,      -- windows that nobody closed, from here to window_from
  recorded_at   timestamptz not null,
  object_sha256 text,             -- of the published object's bytes
  header_sha256 text,
  log_tree      bytea,            -- compact range over the anchors up to this one
  events        bigint,
  tenants       integer,
  witnessed     boolean,
  anchored_at   timestamptz
);
create function refuse_reopening() returns trigger language plpgsql as $$
begin
  if old.anchored_at is not null or (old.number, old.seconds, old.window_from, old.window_to, old.recorded_at) is distinct from
      (new.number, new.seconds, new.window_from, new.window_to, new.recorded_at) or old.backfill_from is distinct from new.backfill_from then
    raise exception 'anchor % is final', old.number using errcode = 'insufficient_privilege';
  end if;
  return new;
end $$;
create trigger final before update on audit_anchors for each row execute function refuse_reopening();
create trigger append_only before delete or truncate on audit_anchors for each statement execute function refuse_change();

-- What the writer knows of itself: one row.
create table audit_ledger (
  one            boolean primary key default true check (one),
  open_cadence   bigint not null default 1 check (open_cadence >= 1),
  beacon_number  bigint not null default 0 check (beacon_number >= 0),
  beacon_sha256  text not null default 'GENESIS', -- of the newest beacon's bytes
  beacon_at      timestamptz,
  witnessed_size bigint not null default 0 check (witnessed_size >= 0) -- of the anchor log, as the witness knows it
);
insert into audit_ledger default values;
create trigger kept before delete or truncate on audit_heads for each statement execute function refuse_change();
create trigger kept before delete or truncate on audit_anchored_heads for each statement execute function refuse_change();
create trigger kept before insert or delete or truncate on audit_ledger for each statement execute function refuse_change();

create policy ledger on audit_heads to agentplatform_ledger using (true) with check (true);
create policy reader on audit_heads for select to agentplatform_reader using (true);
create policy ledger on audit_anchored_heads to agentplatform_ledger using (true) with check (true);
create policy reader on audit_anchored_heads for select to agentplatform_reader using (true);
grant select, insert, update on audit_heads, audit_anchored_heads, audit_anchors to agentplatform_ledger;
grant select, update on audit_ledger to agentplatform_ledger;
grant select on audit_heads, audit_anchored_heads, audit_anchors, audit_ledger to agentplatform_reader;

-- ---- Exports

create domain export_format as text check (value in ('CSV', 'NDJSON'));
create domain export_status as text check (value in ('Queued', 'Running', 'Complete', 'Failed'));

-- Operators' jobs. A job belongs to the tenant in whose chain data.export_initiated was recorded (the filter's, or else the operator's own),
-- so it is inserted in that transaction; operators list all of them as the reader. The link to a result is never stored.
create table export_jobs (
  tenant_id    uuid not null references tenants (id),
  id           uuid not null unique,
  format       export_format not null,
  status       export_status not null default 'Queued',
  filter       json not null,
  requested_by text collate "C" not null, -- the operator's e-mail address, lower case
  requested_at timestamptz not null default clock_timestamp(),
  started_at   timestamptz,
  finished_at  timestamptz,
  lease_until  timestamptz,               -- of whoever runs it
  attempts     integer not null default 0,
  progress     json,                      -- where a crashed run is taken up
  rows         bigint,
  bytes        bigint,
  sha256       text,
  error        text,
  primary key (tenant_id, id)
);
select protect_tenant('export_jobs');
create policy reader on export_jobs for select to agentplatform_reader using (true);
create policy lookup on export_jobs for select to agentplatform_lookup using (true);
create index export_jobs_by_time on export_jobs (requested_at desc, id desc);
create index export_jobs_by_operator on export_jobs (requested_by, requested_at);
create index export_jobs_due on export_jobs (requested_at) where status in ('Queued', 'Running');
grant select, insert, update (status, started_at, finished_at, lease_until, attempts, progress, rows, bytes, sha256, error) on export_jobs to agentplatform_app;
grant select on export_jobs to agentplatform_reader;
grant select (requested_by, requested_at) on export_jobs to agentplatform_lookup;

reset role;
grant create on schema public to agentplatform_lookup;
set local role agentplatform_lookup;

-- How many exports an operator asked for in the last hour, in whatever tenant.
create function lookup_recent_exports(operator text) returns bigint
  language sql volatile security definer set search_path = public
  begin atomic
    select count(*) from export_jobs where requested_by = lower(operator) and requested_at > clock_timestamp() - interval '1 hour';
  end;

-- Whose address this is, also that of a user who may not sign in: what a refused sign-in is recorded under.
create function lookup_address(address text) returns table (tenant_id uuid, user_id uuid)
  language sql stable security definer set search_path = public
  begin atomic
    select u.tenant_id, u.id from users u where lower(u.email) = lower(address);
  end;
revoke execute on function lookup_recent_exports(text), lookup_address(text) from public;
grant execute on function lookup_recent_exports(text), lookup_address(text) to agentplatform_app;

reset role;
revoke create on schema public from agentplatform_lookup;
