-- Schedules: what a tenant has run on time. The clock (EventBridge Scheduler, or the local one) holds a copy of what it needs under the schedule's id;
-- this table is what holds.

set local role agentplatform_owner;

create domain schedule_missed as text check (value in ('skip', 'run_once'));

-- last_occurrence changes with each run: it is in no index, and a page has room for the row's next version.
create table schedules (
  tenant_id       uuid not null references tenants (id),
  id              uuid not null,
  name            text collate "C" not null,
  agent_id        uuid, -- of it and routine_id one
  routine_id      uuid, -- no foreign key: runs of it say what is missing
  prompt          text, -- of an agent
  input           json, -- of a routine
  title           text, -- of an agent's threads
  metadata        json, -- likewise
  expression      text not null,
  time_zone       text not null,
  start_at        timestamptz,
  end_at          timestamptz,
  enabled         boolean not null,
  missed          schedule_missed not null,
  loop            json,                 -- of an agent: how long it goes on
  since           timestamptz not null, -- to the second: what was due before is nobody's, and a rate without a start is counted from it
  last_occurrence timestamptz,          -- the last that was claimed
  revision        integer not null default 1, -- of what the clock is to hold
  put_revision    integer not null default 0, -- that it was told last
  created_by      uuid not null,
  created_at      timestamptz not null,
  updated_at      timestamptz not null, -- by a person
  deleted_at      timestamptz,          -- the row goes when the clock has forgotten it
  primary key (tenant_id, id),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id),
  constraint schedules_one_target check (num_nonnulls(agent_id, routine_id) = 1)
) with (fillfactor = 70);
create unique index schedules_id on schedules (id); -- the clock's names are all tenants'
create index schedules_by_name on schedules (tenant_id, name, id);
select protect_tenant('schedules');

grant select, insert, update, delete on schedules to agentplatform_app;

grant select (tenant_id, id, expression, time_zone, start_at, end_at, enabled, missed, since, last_occurrence, revision, put_revision, updated_at, deleted_at)
  on schedules to agentplatform_lookup;
create policy lookup on schedules for select to agentplatform_lookup using (true);

-- Those that a person asked for have no ARN until the engine begins with them.
create index executions_unstarted on executions (started_at) where arn is null and status = 'running';
grant select (id, arn, status) on executions to agentplatform_lookup;

reset role;
grant create on schema public to agentplatform_lookup;
set local role agentplatform_lookup;

-- All tenants' schedules, as far as the clock has to do with them, by id: up to most of them after that one; null: from the first.
create function lookup_schedules(after uuid, most integer) returns table (tenant_id uuid, id uuid, expression text, time_zone text, start_at timestamptz,
    end_at timestamptz, enabled boolean, missed text, since timestamptz, last_occurrence timestamptz, revision integer, put_revision integer, updated_at timestamptz, deleted_at timestamptz)
  language sql stable security definer set search_path = public
  begin atomic
    select s.tenant_id, s.id, s.expression, s.time_zone, s.start_at, s.end_at, s.enabled, s.missed, s.since, s.last_occurrence, s.revision, s.put_revision, s.updated_at, s.deleted_at
    from schedules s where after is null or s.id > after order by s.id limit most;
  end;

-- Whether there is a schedule of that id, deleted ones that the clock still has included.
create function lookup_schedule(schedule uuid) returns boolean
  language sql stable security definer set search_path = public
  begin atomic
    select exists (select from schedules s where s.id = schedule);
  end;

-- Executions that a person asked for and that the engine has not begun, though it had the time.
create function lookup_unstarted_executions(age interval, most integer) returns table (tenant_id uuid, execution_id uuid)
  language sql stable security definer set search_path = public
  begin atomic
    select e.tenant_id, e.id from executions e where e.arn is null and e.status = 'running' and e.started_at < clock_timestamp() - age order by e.started_at limit most;
  end;

revoke execute on function lookup_schedules(uuid, integer), lookup_schedule(uuid), lookup_unstarted_executions(interval, integer) from public;
grant execute on function lookup_schedules(uuid, integer), lookup_schedule(uuid), lookup_unstarted_executions(interval, integer) to agentplatform_app;

reset role;
revoke create on schema public from agentplatform_lookup;
