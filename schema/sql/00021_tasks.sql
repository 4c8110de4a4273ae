-- Task trackers: what has happened to tasks outside, the threads of those tasks, and the devices of the people who are told.

set local role agentplatform_owner;

create domain task_event_status as text check (value in ('queued', 'done', 'failed'));
create domain device_platform as text check (value in ('apns', 'apns-sandbox', 'fcm'));

-- A webhook of target task is found by its token.
-- refuses nothing: the previous release makes no webhooks of tasks
create unique index webhooks_by_task_token on webhooks (token_hash) where target_type = 'task';
alter table webhooks
  add column provider       integration_provider,       -- of target task: whose events come
  add column secret_version integer not null default 0; -- of the provider's signing secret; 0 or less: there is none, and nothing is verified

-- What was taken in, until it is in its thread.
create table task_events (
  tenant_id   uuid not null,
  id          uuid not null, -- of the delivery
  webhook_id  uuid not null,
  provider    integration_provider not null,
  verified    boolean not null,
  body        text,          -- as it came; null once the event is done. Of one that failed an operator may have it taken in again
  status      task_event_status not null default 'queued',
  attempts    integer not null default 0,
  lease_id    uuid,
  next_at     timestamptz default clock_timestamp() + interval '30 seconds', -- when the sweep may look at it; null: it is over
  error       text,
  created_at  timestamptz not null default clock_timestamp(),
  finished_at timestamptz,
  primary key (tenant_id, id)
);
create index task_events_due on task_events (next_at) where next_at is not null;
create index task_events_by_age on task_events (tenant_id, finished_at) where finished_at is not null;
select protect_tenant('task_events');
grant select, insert, update, delete on task_events to agentplatform_app;

-- A task outside, and its thread here.
create table external_tasks (
  tenant_id   uuid not null,
  provider    integration_provider not null,
  account     text collate "C" not null default '', -- the workspace or site that the task is in
  task_id     text collate "C" not null,            -- the provider's
  thread_uuid uuid not null,
  envelope_at timestamptz,   -- as of when the latest envelope is, by the provider's clock
  said        json not null default '{}', -- as of when single members of it are, which events said that did not tell the task whole
  created_at  timestamptz not null default clock_timestamp(),
  primary key (tenant_id, provider, account, task_id),
  unique (tenant_id, thread_uuid),
  foreign key (tenant_id, thread_uuid) references threads (tenant_id, uuid)
);
select protect_tenant('external_tasks');
grant select, insert, update on external_tasks to agentplatform_app;

-- Who is told by push.
create table devices (
  tenant_id  uuid not null,
  id         uuid not null,
  user_id    uuid not null,
  platform   device_platform not null,
  endpoint   text collate "C" not null, -- of the push service
  created_at timestamptz not null default clock_timestamp(),
  seen_at    timestamptz not null default clock_timestamp(), -- when it was registered last
  primary key (tenant_id, id),
  foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade
);
-- A device has one owner, over all tenants: else one tenant's news would be shown on a phone that a user of another one has now.
create unique index devices_endpoint on devices (endpoint);
create index devices_by_user on devices (tenant_id, user_id, id);
select protect_tenant('devices');
grant select, insert, update, delete on devices to agentplatform_app;

-- Whom an event was pushed to, claimed before it is sent: at most once an event and device.
create table pushes (
  tenant_id  uuid not null,
  event_id   uuid not null,
  device_id  uuid not null,
  created_at timestamptz not null default clock_timestamp(),
  primary key (tenant_id, event_id, device_id)
);
create index pushes_by_age on pushes (tenant_id, created_at);
select protect_tenant('pushes');
grant select, insert, delete on pushes to agentplatform_app;

-- The log says which thread an event went to, once that is known, and why it went to none.
grant update (thread_uuid, outcome, error) on deliveries to agentplatform_app;

grant select (tenant_id, id, token_hash, target_type, provider, enabled, secret_version, rate_limit) on webhooks to agentplatform_lookup;
grant select (tenant_id, id, next_at, finished_at) on task_events to agentplatform_lookup;
grant select (tenant_id, created_at) on pushes to agentplatform_lookup;
grant select (tenant_id, endpoint) on devices to agentplatform_lookup;
create policy lookup on task_events for select to agentplatform_lookup using (true);
create policy lookup on pushes for select to agentplatform_lookup using (true);
create policy lookup on devices for select to agentplatform_lookup using (true);

reset role;
grant create on schema public to agentplatform_lookup;
set local role agentplatform_lookup;

-- What is checked before a task tracker's delivery belongs to a tenant.
create function lookup_task_webhook(hash bytea) returns table (tenant_id uuid, webhook_id uuid, provider text, enabled boolean, rate_limit integer, secret_version integer)
  language sql stable security definer set search_path = public
  begin atomic
    select w.tenant_id, w.id, w.provider, w.enabled, w.rate_limit, w.secret_version from webhooks w where w.token_hash = hash and w.target_type = 'task';
  end;

-- A webhook of a task tracker starts nothing, and is none to whoever calls it as one that does.
create or replace function lookup_webhook(webhook uuid) returns table (tenant_id uuid, token_hash bytea, enabled boolean, rate_limit integer)
  language sql stable security definer set search_path = public
  begin atomic
    select w.tenant_id, w.token_hash, w.enabled, w.rate_limit from webhooks w where w.id = webhook and w.target_type <> 'task';
  end;

create function lookup_task_events(most integer) returns table (tenant_id uuid, event_id uuid)
  language sql stable security definer set search_path = public
  begin atomic
    select e.tenant_id, e.id from task_events e where e.next_at < clock_timestamp() order by e.next_at limit most;
  end;

-- Whose an endpoint is: whoever registers a device takes it from its last owner, who may be of another tenant.
create function lookup_device(device_endpoint text) returns table (tenant_id uuid)
  language sql stable security definer set search_path = public
  begin atomic
    select d.tenant_id from devices d where d.endpoint = device_endpoint;
  end;

-- Tenants that have something too old of what task events leave.
create function lookup_prunable_tasks(age interval) returns table (tenant_id uuid)
  language sql stable security definer set search_path = public
  begin atomic
    select t.id from tenants t
    where coalesce(
      (select true from task_events x where x.tenant_id = t.id and x.finished_at < clock_timestamp() - age order by x.finished_at limit 1),
      (select true from pushes x where x.tenant_id = t.id and x.created_at < clock_timestamp() - age order by x.created_at limit 1));
  end;

revoke execute on function lookup_task_webhook(bytea), lookup_task_events(integer), lookup_device(text), lookup_prunable_tasks(interval) from public;
grant execute on function lookup_task_webhook(bytea), lookup_task_events(integer), lookup_device(text), lookup_prunable_tasks(interval) to agentplatform_app;

reset role;
revoke create on schema public from agentplatform_lookup;
