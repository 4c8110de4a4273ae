-- Routines: definitions in Amazon States Language that tenants name, their versions, and their runs.
--
-- A version is a state machine of its own in the workflow engine, routine-<routine id>-<version>; a run's name there is its id.

set local role agentplatform_owner;

create domain routine_version_status as text check (value in ('waiting', 'ready', 'refused', 'gone'));
create domain routine_run_status as text check (value in ('starting', 'running', 'succeeded', 'failed', 'timed_out', 'aborted'));
create domain routine_starter as text check (value in ('user', 'schedule', 'webhook', 'agent', 'routine'));

create table routines (
  tenant_id       uuid not null references tenants (id),
  id              uuid not null,
  name            text collate "C" not null,
  description     text,
  current_version integer not null, -- what starts
  last_version    integer not null, -- a number is not used again
  created_by      uuid not null,    -- a user
  created_at      timestamptz not null,
  updated_at      timestamptz not null,
  deleted_at      timestamptz, -- nobody starts it any more; the row stays as long as there are runs of it
  primary key (tenant_id, id)
);
create unique index routines_by_name on routines (tenant_id, name) where deleted_at is null;
create index routines_deleted on routines (tenant_id) where deleted_at is not null;
select protect_tenant('routines');

create table routine_versions (
  tenant_id    uuid not null,
  routine_id   uuid not null,
  version      integer not null, -- from 1
  definition   text not null,    -- as its author wrote it
  status       routine_version_status not null default 'waiting', -- whether the engine has its machine
  refusal      text,             -- of a refused one: what the engine said
  created_by   uuid not null,
  created_at   timestamptz not null,
  retire_after timestamptz,      -- of one that is superseded or deleted, while the engine may have its machine
  primary key (tenant_id, routine_id, version),
  foreign key (tenant_id, routine_id) references routines (tenant_id, id)
);
create index routine_versions_retired on routine_versions (retire_after) where retire_after is not null;
select protect_tenant('routine_versions');

create table routine_runs (
  tenant_id     uuid not null,
  id            uuid not null,
  routine_id    uuid not null,
  version       integer not null,
  status        routine_run_status not null default 'starting',
  input         json not null,
  output        json, -- of one that succeeded
  error         text, -- of one that did not: the code
  cause         text, -- of one that did not: for people
  arn           text, -- in the engine; null while it is starting
  started_by    routine_starter not null,
  starter_id    uuid not null, -- the user, schedule, webhook, agent's turn or run that started it
  parent_run_id uuid,          -- the run that it is a part of; null: none
  callback_id   uuid,          -- of the step of the parent that waits for its end; null: nobody waits
  depth         integer not null, -- 1, and one more than its parent's
  look_after    timestamptz,   -- until it is over: when the sweep looks at it
  created_at    timestamptz not null,
  started_at    timestamptz,
  finished_at   timestamptz,
  primary key (tenant_id, id),
  foreign key (tenant_id, routine_id) references routines (tenant_id, id)
);
create unique index routine_runs_id on routine_runs (id); -- what the engine tells names no tenant
create index routine_runs_of on routine_runs (tenant_id, routine_id, id);
create index routine_runs_open on routine_runs (tenant_id, routine_id, version) where finished_at is null;
create index routine_runs_children on routine_runs (tenant_id, parent_run_id) where parent_run_id is not null;
create index routine_runs_due on routine_runs (look_after) where look_after is not null;
create index routine_runs_by_end on routine_runs (finished_at) where finished_at is not null;
select protect_tenant('routine_runs');

grant select, insert, update, delete on routines, routine_versions, routine_runs to agentplatform_app;

grant select (tenant_id, id, deleted_at) on routines to agentplatform_lookup;
grant select (tenant_id, routine_id, version, retire_after) on routine_versions to agentplatform_lookup;
grant select (tenant_id, id, routine_id, version, look_after, finished_at) on routine_runs to agentplatform_lookup;
create policy lookup on routines for select to agentplatform_lookup using (true);
create policy lookup on routine_versions for select to agentplatform_lookup using (true);
create policy lookup on routine_runs for select to agentplatform_lookup using (true);

reset role;
grant create on schema public to agentplatform_lookup;
set local role agentplatform_lookup;

-- Whose run that is.
create function lookup_routine_run(run uuid) returns table (tenant_id uuid)
  language sql stable security definer set search_path = public
  begin atomic
    select r.tenant_id from routine_runs r where r.id = run;
  end;

-- Runs that may have ended, or never began, without anybody having told.
create function lookup_due_routine_runs(most integer) returns table (tenant_id uuid, run_id uuid)
  language sql stable security definer set search_path = public
  begin atomic
    select r.tenant_id, r.id from routine_runs r where r.look_after < clock_timestamp() order by r.look_after limit most;
  end;

-- Versions whose machine nobody needs any more: superseded or deleted, and no run of theirs goes on.
create function lookup_retired_routine_versions(most integer) returns table (tenant_id uuid, routine_id uuid, version integer)
  language sql stable security definer set search_path = public
  begin atomic
    select v.tenant_id, v.routine_id, v.version from routine_versions v where v.retire_after < clock_timestamp()
      and not exists (select from routine_runs r where r.tenant_id = v.tenant_id and r.routine_id = v.routine_id and r.version = v.version and r.finished_at is null)
    order by v.retire_after limit most;
  end;

-- Tenants with runs that have been over for that long, or with deleted routines that have no runs.
create function lookup_prunable_routine_tenants(age interval) returns table (tenant_id uuid)
  language sql stable security definer set search_path = public
  begin atomic
    select r.tenant_id from routine_runs r where r.finished_at < clock_timestamp() - age
    union select d.tenant_id from routines d where d.deleted_at is not null
      and not exists (select from routine_runs r where r.tenant_id = d.tenant_id and r.routine_id = d.id);
  end;

revoke execute on function lookup_routine_run(uuid), lookup_due_routine_runs(integer), lookup_retired_routine_versions(integer),
  lookup_prunable_routine_tenants(interval) from public;
grant execute on function lookup_routine_run(uuid), lookup_due_routine_runs(integer), lookup_retired_routine_versions(integer),
  lookup_prunable_routine_tenants(interval) to agentplatform_app;

reset role;
revoke create on schema public from agentplatform_lookup;
