-- Webhooks and their runs.
--
-- A run is a turn that a webhook started: a row of thread_turns with webhook_id and the body that came with the call. One whose target could
-- not be started has no thread.

set local role agentplatform_owner;

create domain webhook_target as text check (value in ('agent', 'routine', 'task'));
create domain webhook_rate as integer check (value between 1 and 100000);

-- Counted on each call: none of what changes then is in an index, and a page has room for the row's next version.
create table webhooks (
  tenant_id        uuid not null references tenants (id),
  id               uuid not null,
  name             text collate "C" not null,
  description      text,
  token_hash       bytea not null, -- SHA-256; the token itself is nowhere
  token_end        text not null,  -- its last four characters
  target_type      webhook_target not null,
  agent_id         uuid,
  routine_id       uuid,
  prompt           text,
  config           json not null default '{}',
  enabled          boolean not null default true,
  rate_limit       webhook_rate not null default 10, -- calls a minute
  last_invoked_at  timestamptz,
  invocation_count bigint not null default 0,        -- its runs, test ones too
  version          integer not null default 1,       -- of what its owner says, not of the counters
  created_at       timestamptz not null default now(),
  updated_at       timestamptz not null default now(),
  primary key (tenant_id, id),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id)
) with (fillfactor = 50);
create unique index webhooks_id on webhooks (id); -- a call names no tenant
create index webhooks_by_name on webhooks (tenant_id, name, id);
select protect_tenant('webhooks');

alter table thread_turns
  alter column thread_uuid drop not null, -- of a run whose target could not be started
  alter column number drop not null,
  add column webhook_id uuid,       -- no foreign key: runs outlive their webhook, and each would lock its row
  add column context_snapshot json, -- the body of the call, to the byte
  add column test boolean not null default false;
create index thread_turns_by_webhook on thread_turns (tenant_id, webhook_id, id) where webhook_id is not null;

-- What a call with the same Idempotency-Key is answered, for a day.
create table webhook_keys (
  tenant_id  uuid not null,
  webhook_id uuid not null,
  key        text collate "C" not null,
  run_id     uuid not null,
  created_at timestamptz not null default clock_timestamp(),
  primary key (tenant_id, webhook_id, key)
);
create index webhook_keys_by_age on webhook_keys (created_at);
select protect_tenant('webhook_keys');

grant select, insert, update, delete on webhooks to agentplatform_app;
grant select, insert, delete on webhook_keys to agentplatform_app;

grant select (tenant_id, id, token_hash, enabled, rate_limit) on webhooks to agentplatform_lookup;
grant select (tenant_id, created_at) on webhook_keys to agentplatform_lookup;
create policy lookup on webhooks for select to agentplatform_lookup using (true);
create policy lookup on webhook_keys for select to agentplatform_lookup using (true);

reset role;
grant create on schema public to agentplatform_lookup;
set local role agentplatform_lookup;

-- What is checked before a call belongs to a tenant.
create function lookup_webhook(webhook uuid) returns table (tenant_id uuid, token_hash bytea, enabled boolean, rate_limit integer)
  language sql stable security definer set search_path = public
  begin atomic
    select w.tenant_id, w.token_hash, w.enabled, w.rate_limit from webhooks w where w.id = webhook;
  end;

create function lookup_expired_webhook_keys(age interval) returns table (tenant_id uuid)
  language sql stable security definer set search_path = public
  begin atomic
    select distinct k.tenant_id from webhook_keys k where k.created_at < clock_timestamp() - age;
  end;

revoke execute on function lookup_webhook(uuid), lookup_expired_webhook_keys(interval) from public;
grant execute on function lookup_webhook(uuid), lookup_expired_webhook_keys(interval) to agentplatform_app;

reset role;
revoke create on schema public from agentplatform_lookup;
