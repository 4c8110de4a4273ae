-- Tenants, users, agents, threads, messages, turns: tables, roles, row-level security.
--
-- Roles: agentplatform_owner owns everything and runs migrations · agentplatform_app is what functions connect as ·
-- agentplatform_ledger appends to the audit chain · agentplatform_reader reads the audit log · agentplatform_lookup owns the few
-- functions that answer "whose is this?" across tenants. None has BYPASSRLS; deployment gives LOGIN and a credential to app, ledger and reader.

do $$
declare r text;
begin
  foreach r in array array['owner', 'app', 'ledger', 'reader', 'lookup'] loop
    if not exists (select from pg_roles where rolname = 'agentplatform_' || r) then
      execute format('create role %I nologin nosuperuser nocreatedb nocreaterole', 'agentplatform_' || r);
    end if;
    execute format('grant usage on schema public to %I', 'agentplatform_' || r);
  end loop;
  grant create on schema public to agentplatform_owner, agentplatform_lookup;
  -- A migration's role must be able to hand objects over; a superuser needs no membership.
  if not (select rolsuper from pg_roles where rolname = current_user) then
    execute format('grant agentplatform_owner, agentplatform_lookup to %I', current_user);
  end if;
end $$;

set local role agentplatform_owner;

-- The tenant of the transaction; null when nobody set it. A transaction-local setting reads back as '' once its transaction is over.
create function current_tenant() returns uuid
  language sql stable parallel safe
  return nullif(current_setting('app.tenant_id', true), '')::uuid;

-- Puts a table with a tenant_id under row-level security: only rows of the transaction's tenant exist, also for the owner.
create function protect_tenant(t regclass) returns void language plpgsql as $$
begin
  execute format('alter table %s enable row level security', t);
  execute format('alter table %s force row level security', t);
  execute format('create policy tenant on %s using (tenant_id = current_tenant()) with check (tenant_id = current_tenant())', t);
end $$;
revoke execute on function protect_tenant(regclass) from public;

-- Closed sets of words are domains, not CHECK constraints of tables: PostgreSQL reads a table's constraints anew for every statement that
-- writes to it, a domain's once a connection. And not enums: their comparison may not go below a policy, so it could use no index.
create domain user_role as text check (value in ('owner', 'admin', 'member'));
create domain user_status as text check (value in ('active', 'disabled'));
create domain agent_status as text check (value in ('created', 'active', 'suspended', 'archived'));
create domain thread_channel as text check (value in ('CHAT', 'AUTO', 'EMAIL', 'SLACK', 'GITHUB', 'TASK', 'EVAL'));
create domain thread_status as text check (value in ('open', 'closed', 'failed', 'waiting'));
create domain turn_status as text check (value in ('queued', 'running', 'succeeded', 'failed', 'interrupted'));
create domain step_kind as text check (value in ('model', 'tool'));
create domain step_status as text check (value in ('started', 'finished'));
create domain message_role as text check (value in ('user', 'assistant', 'system', 'tool'));
create domain turn_limit as integer check (value >= 1);

create table tenants (
  id         uuid primary key,
  slug       text not null unique check (slug ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
  name       text not null,
  created_at timestamptz not null default now()
);
alter table tenants enable row level security;
alter table tenants force row level security;
create policy tenant on tenants using (id = current_tenant()) with check (id = current_tenant());

create table users (
  tenant_id  uuid not null references tenants (id),
  id         uuid not null,
  email      text not null,
  role       user_role not null,
  status     user_status not null default 'active',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (tenant_id, id)
);
-- A user belongs to exactly one tenant, so an address is unique over all of them.
create unique index users_email on users (lower(email));
select protect_tenant('users');

create table agent_templates (
  tenant_id         uuid not null references tenants (id),
  id                uuid not null,
  name              text not null,
  description       text,
  model_id          text not null,
  system_prompt     text,
  runtime           text not null default 'default',
  tools             text[] not null default '{}',
  guardrail_id      text,
  skill_pack_ids    text[],
  knowledge_base_id text,
  is_default        boolean not null default false,
  created_at        timestamptz not null default now(),
  updated_at        timestamptz not null default now(),
  primary key (tenant_id, id)
);
create unique index agent_templates_default on agent_templates (tenant_id) where is_default;
select protect_tenant('agent_templates');

create table agents (
  tenant_id         uuid not null references tenants (id),
  id                uuid not null,
  name              text collate "C" not null,
  description       text,
  status            agent_status not null default 'created',
  system_prompt     text,
  template_id       uuid not null,
  skill_pack_ids    text[],
  knowledge_base_id text,
  turns_per_minute  turn_limit,
  turns_per_hour    turn_limit,
  turns_per_day     turn_limit,
  created_at        timestamptz not null default now(),
  updated_at        timestamptz not null default now(),
  primary key (tenant_id, id),
  -- A foreign key is checked without row-level security: the tenant is part of each one, so that none can cross.
  foreign key (tenant_id, template_id) references agent_templates (tenant_id, id)
);
create index agents_by_name on agents (tenant_id, name, id);
select protect_tenant('agents');

create table spaces (
  tenant_id        uuid not null references tenants (id),
  id               uuid not null,
  name             text not null,
  default_agent_id uuid,
  is_default       boolean not null default false,
  created_at       timestamptz not null default now(),
  updated_at       timestamptz not null default now(),
  primary key (tenant_id, id),
  foreign key (tenant_id, default_agent_id) references agents (tenant_id, id)
);
create unique index spaces_default on spaces (tenant_id) where is_default;
select protect_tenant('spaces');

-- The next thread number per tenant and prefix; the row's lock is held until the thread is committed, so numbers have no gaps.
create table thread_counters (
  tenant_id   uuid not null references tenants (id),
  prefix      text not null,
  last_number bigint not null,
  primary key (tenant_id, prefix)
);
select protect_tenant('thread_counters');

create table threads (
  tenant_id     uuid not null,
  uuid          uuid not null,
  prefix        text not null,
  number        bigint not null,
  channel       thread_channel not null,
  status        thread_status not null default 'open',
  title         text,
  agent_id      uuid not null,
  space_id      uuid not null,
  metadata      jsonb,
  token_count   bigint not null default 0,
  message_count integer not null default 0, -- the last message's position
  turn_count    integer not null default 0, -- the last turn's number
  created_at    timestamptz not null default now(),
  updated_at    timestamptz not null default now(),
  primary key (tenant_id, uuid),
  unique (tenant_id, prefix, number),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id),
  foreign key (tenant_id, space_id) references spaces (tenant_id, id)
);
create index threads_by_activity on threads (tenant_id, updated_at desc, uuid desc);
create index threads_by_agent on threads (tenant_id, agent_id, updated_at desc, uuid desc);
select protect_tenant('threads');

-- Here and below, no foreign key leads to rows that all writers share (tenant, agent, user): each insert would lock them, and write the
-- lock down. The tenant is held by the keys in between: message and step → turn → thread → agent and space → tenant.
--
-- A turn is queued with the message that asks for it. One queued and one running turn a thread at the most.
create table thread_turns (
  tenant_id           uuid not null,
  id                  uuid not null,
  thread_uuid         uuid not null,
  agent_id            uuid not null,
  number              integer not null, -- in the thread, from 1
  status              turn_status not null default 'queued',
  attempts            integer not null default 0,
  lease_id            uuid,        -- of the attempt that runs it; whoever holds another one may not write
  lease_until         timestamptz, -- while queued: when the reaper may look at it
  interrupt           boolean not null default false,
  phases              json not null default '[]', -- json, here and below: given back as it was, and a model or tool may say \u0000
  model               text,
  input_tokens        bigint not null default 0,
  output_tokens       bigint not null default 0,
  cost_micros         bigint,      -- millionths of a US dollar; null: price unknown
  tool_outcomes       json not null default '[]',
  guardrail_decisions json not null default '[]',
  evaluator_scores    json not null default '[]',
  error               text,
  queued_at           timestamptz not null default clock_timestamp(),
  started_at          timestamptz,
  finished_at         timestamptz,
  primary key (tenant_id, id),
  unique (tenant_id, thread_uuid, number),
  foreign key (tenant_id, thread_uuid) references threads (tenant_id, uuid)
);
create unique index thread_turns_queued on thread_turns (tenant_id, thread_uuid) where status = 'queued';
create unique index thread_turns_running on thread_turns (tenant_id, thread_uuid) where status = 'running';
-- Only the reaper asks by lease: a predicate on status would tempt the planner to find single turns here, among the dead ones.
create index thread_turns_due on thread_turns (lease_until) where lease_until is not null;
create index thread_turns_by_agent on thread_turns (tenant_id, agent_id, queued_at);
select protect_tenant('thread_turns');

create table messages (
  tenant_id    uuid not null,
  id           uuid not null,
  thread_uuid  uuid not null,
  position     integer not null, -- in the thread, from 1
  role         message_role not null,
  body         text not null,
  tool_calls   json,
  tool_results json,
  token_count  integer not null default 0,
  model        text,
  turn_id      uuid,             -- that answers (user) or wrote (assistant) it
  turn_number  integer,
  user_id      uuid,             -- who sent it
  created_at   timestamptz not null default clock_timestamp(),
  primary key (tenant_id, thread_uuid, position),
  foreign key (tenant_id, thread_uuid) references threads (tenant_id, uuid),
  foreign key (tenant_id, turn_id) references thread_turns (tenant_id, id)
);
-- Whatever dies and comes back, a turn has one reply.
create unique index messages_reply on messages (tenant_id, turn_id) where role = 'assistant';
select protect_tenant('messages');

-- One model call or tool call of a turn, written before it starts and when it has ended: what a resumed turn goes on from.
create table turn_steps (
  tenant_id   uuid not null,
  turn_id     uuid not null,
  number      integer not null, -- in the turn, from 1
  kind        step_kind not null,
  name        text not null,    -- the model's or the tool's
  status      step_status not null default 'started',
  response    json,
  started_at  timestamptz not null default clock_timestamp(),
  finished_at timestamptz,
  primary key (tenant_id, turn_id, number),
  foreign key (tenant_id, turn_id) references thread_turns (tenant_id, id)
);
select protect_tenant('turn_steps');

-- Stops the transaction of an attempt that no longer holds its turn: part of whatever an attempt writes.
create function hold_turn(turn uuid, lease uuid) returns void language plpgsql as $$
begin
  perform from thread_turns where id = turn and lease_id = lease and status = 'running' for no key update;
  if not found then
    raise exception 'turn % is held by another attempt', turn using errcode = 'APL01';
  end if;
end $$;

-- What a retried call with the same clientToken is answered.
create table client_tokens (
  tenant_id  uuid not null,
  user_id    uuid not null,
  operation  text not null,
  token      text not null,
  input_hash bytea not null,
  result     text not null, -- JSON, as first answered
  created_at timestamptz not null default now(),
  primary key (tenant_id, user_id, operation, token),
  foreign key (tenant_id, user_id) references users (tenant_id, id)
);
select protect_tenant('client_tokens');

-- Events that subscribers must still get: written with the change they tell of, deleted once published.
create table notifications (
  tenant_id  uuid not null,
  id         uuid not null,
  event      json not null,
  created_at timestamptz not null default now(),
  primary key (tenant_id, id)
);
select protect_tenant('notifications');

create table audit_events (
  tenant_id      uuid not null references tenants (id),
  event_id       uuid not null primary key,
  chain_position bigint not null check (chain_position >= 1),
  occurred_at    timestamptz not null,
  recorded_at    timestamptz not null,
  actor          text not null,
  actor_type     text not null check (actor_type in ('user', 'system', 'agent')),
  source         text not null check (source in ('graphql', 'rest', 'runtime', 'scheduler', 'system')),
  event_type     text not null,
  event_hash     text not null unique check (event_hash ~ '^[0-9a-f]{64}$'),
  prev_hash      text not null check (prev_hash ~ '^([0-9a-f]{64}|GENESIS)$'),
  canonical      text not null, -- what was hashed, to the byte
  payload        jsonb not null,
  cadence_id     text,
  unique (tenant_id, chain_position),
  unique (tenant_id, prev_hash)
);
select protect_tenant('audit_events');
create policy ledger on audit_events to agentplatform_ledger using (true) with check (true);
create policy reader on audit_events for select to agentplatform_reader using (true);
create policy reader on tenants for select to agentplatform_reader using (true);

-- What functions may do. Nothing here can be truncated, and a table that is not named cannot be touched.
grant select, insert on tenants to agentplatform_app;
grant select, insert, update on users, agent_templates, agents, spaces, thread_counters, threads, thread_turns, turn_steps to agentplatform_app;
grant select, insert on messages to agentplatform_app;
grant select, insert, update on client_tokens to agentplatform_app;
grant select, insert, delete on notifications to agentplatform_app;
grant select, insert on audit_events to agentplatform_ledger;
grant select on tenants, audit_events to agentplatform_reader;

-- "Whose is this?", asked before there is a tenant. Each answers identifiers only, through a role that sees those columns only.
grant select (id, slug) on tenants to agentplatform_lookup;
grant select (tenant_id, id, email, role, status) on users to agentplatform_lookup;
grant select (tenant_id, id, thread_uuid, status, lease_until) on thread_turns to agentplatform_lookup;
grant select (tenant_id, id, created_at) on notifications to agentplatform_lookup;
create policy lookup on tenants for select to agentplatform_lookup using (true);
create policy lookup on users for select to agentplatform_lookup using (true);
create policy lookup on thread_turns for select to agentplatform_lookup using (true);
create policy lookup on notifications for select to agentplatform_lookup using (true);

reset role;
set local role agentplatform_lookup;

create function lookup_user(address text) returns table (tenant_id uuid, tenant_slug text, user_id uuid, role text)
  language sql stable security definer set search_path = public
  begin atomic
    select u.tenant_id, t.slug, u.id, u.role from users u join tenants t on t.id = u.tenant_id
    where lower(u.email) = lower(address) and u.status = 'active';
  end;

-- Turns that nobody works on although they could be: queued in an idle thread and not dispatched, or running with a lease that ran out.
create function lookup_due_turns(most integer) returns table (tenant_id uuid, turn_id uuid)
  language sql stable security definer set search_path = public
  begin atomic
    select t.tenant_id, t.id from thread_turns t
    where t.status in ('queued', 'running') and t.lease_until < clock_timestamp()
      and (t.status = 'running' or not exists (select from thread_turns r
        where r.tenant_id = t.tenant_id and r.thread_uuid = t.thread_uuid and r.status = 'running'))
    order by t.lease_until limit most;
  end;

create function lookup_stale_notifications(age interval, most integer) returns table (tenant_id uuid, notification_id uuid)
  language sql stable security definer set search_path = public
  begin atomic
    select n.tenant_id, n.id from notifications n where n.created_at < now() - age order by n.id limit most;
  end;

revoke execute on function lookup_user(text), lookup_due_turns(integer), lookup_stale_notifications(interval, integer) from public;
grant execute on function lookup_user(text), lookup_due_turns(integer), lookup_stale_notifications(interval, integer) to agentplatform_app;

reset role;
revoke create on schema public from agentplatform_lookup;
