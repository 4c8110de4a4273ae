-- Integrations: what comes from outside services into threads, and what goes back to them.

set local role agentplatform_owner;

create domain integration_provider as text check (value in ('slack', 'github', 'email', 'generic', 'linear', 'jira', 'asana'));
create domain delivery_outcome as text check (value in ('ok', 'unverified', 'duplicate', 'unknown', 'invalid', 'rate_limited', 'error'));
create domain reply_status as text check (value in ('queued', 'posting', 'posted', 'failed', 'unknown'));

-- Whatever a provider needs that is secret is in the store of secrets.
create table integrations (
  tenant_id      uuid not null references tenants (id),
  id             uuid not null,
  name           text collate "C" not null,
  provider       integration_provider not null,
  agent_id       uuid,                       -- whose threads are opened; null: of a task tracker, which has an OAuth client only
  config         json not null default '{}', -- of the provider
  address        text collate "C",           -- of e-mail: the local part, in lower case
  enabled        boolean not null default true,
  rate_limit     integer not null default 600 check (rate_limit between 1 and 100000), -- deliveries a minute
  secret_version integer not null default 0, -- of the secret that was kept last; 0: there is none
  error          text,                       -- why the last reply could not be posted
  created_by     uuid not null,
  created_at     timestamptz not null default clock_timestamp(),
  updated_at     timestamptz not null default clock_timestamp(),
  primary key (tenant_id, id),
  unique (tenant_id, name),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id)
);
create unique index integrations_id on integrations (id);                                   -- a delivery names no tenant
create unique index integrations_address on integrations (address) where address is not null; -- a mail names none either
select protect_tenant('integrations');
grant select, insert, update, delete on integrations to agentplatform_app;

-- A conversation outside, and its thread here.
create table integration_threads (
  tenant_id      uuid not null,
  integration_id uuid not null, -- no foreign key: threads outlive their integration
  key            text collate "C" not null, -- of the conversation, as the provider names it
  thread_uuid    uuid not null,
  address        json not null, -- where replies go that answer no message: the provider's, of the last message
  reply_token    uuid not null default gen_random_uuid(), -- of e-mail: in the address that answers are sent to. It names the thread and is no credential
  created_at     timestamptz not null default clock_timestamp(),
  primary key (tenant_id, integration_id, key),
  unique (tenant_id, thread_uuid),
  foreign key (tenant_id, thread_uuid) references threads (tenant_id, uuid)
);
create unique index integration_threads_reply on integration_threads (reply_token); -- a mail names no tenant
select protect_tenant('integration_threads');
grant select, insert, update on integration_threads to agentplatform_app;

-- What was taken in once: a delivery by the provider's id of it, a message by its own. Kept as long as the log.
create table delivery_keys (
  tenant_id  uuid not null,
  source_id  uuid not null, -- the integration, or the webhook of a task tracker, or what all of a tenant's have in common
  key        text collate "C" not null,
  created_at timestamptz not null default clock_timestamp(),
  primary key (tenant_id, source_id, key)
);
create index delivery_keys_by_age on delivery_keys (tenant_id, created_at);
select protect_tenant('delivery_keys');
grant select, insert, delete on delivery_keys to agentplatform_app;

-- The log of what came in, for 90 days.
create table deliveries (
  tenant_id      uuid not null references tenants (id),
  id             uuid not null,
  provider       integration_provider not null,
  integration_id uuid,    -- that it came to; null: to a webhook
  webhook_id     uuid,    -- of a task tracker; null: to an integration
  outcome        delivery_outcome not null,
  event          text,    -- what it is about, in the provider's word
  provider_id    text,    -- the provider's id of it
  error          text,    -- why it was not taken, for people
  size           integer not null, -- of the body, in bytes
  sha256         bytea not null,   -- of the body
  body           text,             -- without secrets; null: larger than 8 KiB, unverified, or no text
  duration_us    integer not null, -- from its arrival to the answer
  thread_uuid    uuid,             -- that it went to
  replay_of      uuid,             -- the delivery that an operator had taken in again
  received_at    timestamptz not null default clock_timestamp(),
  primary key (tenant_id, id)
);
create unique index deliveries_id on deliveries (id); -- an operator names no tenant
create index deliveries_by_integration on deliveries (tenant_id, integration_id, id) where integration_id is not null;
create index deliveries_by_webhook on deliveries (tenant_id, webhook_id, id) where webhook_id is not null;
create index deliveries_by_outcome on deliveries (tenant_id, outcome, id) where outcome <> 'ok'; -- what was not taken is looked for among much that was
create index deliveries_by_age on deliveries (tenant_id, received_at);
select protect_tenant('deliveries');
grant select, insert, delete on deliveries to agentplatform_app;

-- What an agent says in a thread of an integration, on its way there: one row a message, written in the message's transaction. Also that a message from
-- outside could not be answered.
create table integration_replies (
  tenant_id      uuid not null,
  id             uuid not null,
  integration_id uuid not null,
  thread_uuid    uuid,   -- null: of a message that was refused and opened none
  address        json,   -- where it goes: of the last message that it answers, or of the one that was refused; null: it was not claimed yet
  message_id     uuid,   -- that is posted; null: that there is no answer
  turn_id        uuid,   -- that said it, or failed; null: of a message that was refused
  status         reply_status not null default 'queued',
  attempts       integer not null default 0,
  lease_id       uuid,   -- of whoever posts it
  asked_at       timestamptz, -- since when the provider may have it: it is looked for there before it is posted again
  next_at        timestamptz default clock_timestamp() + interval '30 seconds', -- when the sweep may look at it; null: it is over
  external_id    text,   -- the provider's id of what was posted
  error          text,
  created_at     timestamptz not null default clock_timestamp(),
  finished_at    timestamptz,
  primary key (tenant_id, id),
  foreign key (tenant_id, thread_uuid) references threads (tenant_id, uuid),
  check (thread_uuid is not null or address is not null)
);
-- refuses nothing: the table is new
create unique index integration_replies_message on integration_replies (tenant_id, message_id) where message_id is not null;
-- refuses nothing: the table is new
create unique index integration_replies_failure on integration_replies (tenant_id, turn_id) where message_id is null;
create index integration_replies_of_thread on integration_replies (tenant_id, thread_uuid, created_at) where next_at is not null;
create index integration_replies_due on integration_replies (next_at) where next_at is not null;
create index integration_replies_by_age on integration_replies (tenant_id, finished_at) where finished_at is not null;
select protect_tenant('integration_replies');
grant select, insert, update, delete on integration_replies to agentplatform_app;

-- A message has what came with it: who said it outside, and where it is answered, or what of a task has changed.
alter table messages add column metadata json;

-- What an agent says goes where the conversation is.
create function reply_outside() returns trigger language plpgsql as $$
begin
  insert into integration_replies (tenant_id, id, integration_id, thread_uuid, message_id, turn_id)
    select x.tenant_id, gen_random_uuid(), x.integration_id, x.thread_uuid, new.id, new.turn_id
    from integration_threads x join integrations i on i.tenant_id = x.tenant_id and i.id = x.integration_id -- of a deleted one nobody hears
    where x.tenant_id = new.tenant_id and x.thread_uuid = new.thread_uuid
    on conflict do nothing;
  return null;
end $$;

-- refuses nothing: it writes to a table of its own
create trigger replied after insert on messages
  for each row when (new.role = 'assistant' and new.turn_id is not null and new.body <> '')
  execute function reply_outside();

-- Of a turn that failed the conversation outside is told that; of one that was cancelled or has succeeded, if it has said nothing. One that was interrupted
-- is followed by another.
create function tell_failure_outside() returns trigger language plpgsql as $$
begin
  insert into integration_replies (tenant_id, id, integration_id, thread_uuid, turn_id)
    select x.tenant_id, gen_random_uuid(), x.integration_id, x.thread_uuid, new.id
    from integration_threads x join integrations i on i.tenant_id = x.tenant_id and i.id = x.integration_id -- of a deleted one nobody hears
    where x.tenant_id = new.tenant_id and x.thread_uuid = new.thread_uuid
      and (new.status = 'failed' or not exists (select from messages m where m.tenant_id = new.tenant_id and m.turn_id = new.id and m.role = 'assistant' and m.body <> ''))
    on conflict do nothing;
  return null;
end $$;

-- refuses nothing: it writes to a table of its own
create trigger failed_outside after update of status on thread_turns
  for each row when (old.status <> new.status and new.status in ('failed', 'cancelled', 'succeeded') and new.thread_uuid is not null)
  execute function tell_failure_outside();

-- A turn that waited for a person touches the texts that it was given, that of a task among them.
create or replace function touch_prompt_texts() returns trigger language plpgsql as $$
begin
  update prompt_texts p set used_at = now()
    from (select o.sha256 from prompt_texts o where o.tenant_id = new.tenant_id and o.used_at < now() - interval '1 day'
      and o.sha256 in (decode(new.prompt->>'system', 'hex'), decode(new.prompt->>'tools', 'hex'), decode(new.prompt->>'task', 'hex'))
      order by o.sha256 for no key update) o
    where p.tenant_id = new.tenant_id and p.sha256 = o.sha256;
  return null;
end $$;

grant select (tenant_id, id, provider, enabled, rate_limit, secret_version, address, updated_at) on integrations to agentplatform_lookup;
grant select (tenant_id, integration_id, reply_token) on integration_threads to agentplatform_lookup;
grant select (tenant_id, id) on deliveries to agentplatform_lookup;
grant select (tenant_id, received_at) on deliveries to agentplatform_lookup;
grant select (tenant_id, created_at) on delivery_keys to agentplatform_lookup;
grant select (tenant_id, id, next_at, finished_at) on integration_replies to agentplatform_lookup;
create policy lookup on integrations for select to agentplatform_lookup using (true);
create policy lookup on integration_threads for select to agentplatform_lookup using (true);
create policy lookup on deliveries for select to agentplatform_lookup using (true);
create policy lookup on delivery_keys for select to agentplatform_lookup using (true);
create policy lookup on integration_replies for select to agentplatform_lookup using (true);

reset role;
grant create on schema public to agentplatform_lookup;
set local role agentplatform_lookup;

-- What is checked before a delivery belongs to a tenant.
create function lookup_integration(integration uuid) returns table (tenant_id uuid, provider text, enabled boolean, rate_limit integer, secret_version integer, changed timestamptz)
  language sql stable security definer set search_path = public
  begin atomic
    select i.tenant_id, i.provider, i.enabled, i.rate_limit, i.secret_version, i.updated_at from integrations i where i.id = integration;
  end;

create function lookup_integration_address(local_part text) returns table (tenant_id uuid, integration_id uuid)
  language sql stable security definer set search_path = public
  begin atomic
    select i.tenant_id, i.id from integrations i where i.address = local_part;
  end;

create function lookup_reply_token(token uuid) returns table (tenant_id uuid, integration_id uuid)
  language sql stable security definer set search_path = public
  begin atomic
    select x.tenant_id, x.integration_id from integration_threads x where x.reply_token = token;
  end;

create function lookup_delivery(delivery uuid) returns table (tenant_id uuid)
  language sql stable security definer set search_path = public
  begin atomic
    select d.tenant_id from deliveries d where d.id = delivery;
  end;

create function lookup_integration_replies(most integer) returns table (tenant_id uuid, reply_id uuid)
  language sql stable security definer set search_path = public
  begin atomic
    select r.tenant_id, r.id from integration_replies r where r.next_at < clock_timestamp() order by r.next_at limit most;
  end;

-- Tenants that have something too old of what deliveries leave: a few looks into indexes for each tenant there is.
create function lookup_prunable_deliveries(age interval) returns table (tenant_id uuid)
  language sql stable security definer set search_path = public
  begin atomic
    select t.id from tenants t
    where coalesce( -- neither exists nor any row will do: a plan for those may read a whole table
      (select true from deliveries x where x.tenant_id = t.id and x.received_at < clock_timestamp() - age order by x.received_at limit 1),
      (select true from delivery_keys x where x.tenant_id = t.id and x.created_at < clock_timestamp() - age order by x.created_at limit 1),
      (select true from integration_replies x where x.tenant_id = t.id and x.finished_at < clock_timestamp() - age order by x.finished_at limit 1));
  end;

revoke execute on function lookup_integration(uuid), lookup_integration_address(text), lookup_reply_token(uuid), lookup_delivery(uuid), lookup_integration_replies(integer),
  lookup_prunable_deliveries(interval) from public;
grant execute on function lookup_integration(uuid), lookup_integration_address(text), lookup_reply_token(uuid), lookup_delivery(uuid), lookup_integration_replies(integer),
  lookup_prunable_deliveries(interval) to agentplatform_app;

reset role;
revoke create on schema public from agentplatform_lookup;
