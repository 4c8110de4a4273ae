-- Steps of routine runs: what the platform does for a task of a routine, and what people decide. Runs that webhooks start.

set local role agentplatform_owner;

create domain routine_verb as text check (value in ('run_turn', 'call_tool', 'wait_for_approval', 'send_mail', 'start_routine'));
-- waiting: for a turn, a run or a person · queued: to be done by call-tool · running: a tool is being called · cut: the task was over before.
create domain routine_step_status as text check (value in ('waiting', 'queued', 'running', 'succeeded', 'failed', 'cut'));
create domain routine_decision as text check (value in ('APPROVED', 'DENIED'));

-- One row a token of the engine's: a task that the engine tries again is another step.
create table routine_steps (
  tenant_id    uuid not null,
  id           uuid not null,
  run_id       uuid not null,
  state        text not null,  -- of the definition
  entered_at   timestamptz not null, -- when the state was, by the engine, to the millisecond
  attempt      integer not null,     -- of the state: how often it was tried before
  verb         routine_verb not null,
  token_hash   bytea not null, -- SHA-256: what is asked twice is begun once
  callback_id  uuid,           -- by which the engine is told; set with what the step begins
  status       routine_step_status not null,
  input        json not null,  -- the verb's parameters
  agent_id     uuid,           -- run_turn, call_tool
  turn_id      uuid,           -- run_turn: the turn that was asked for
  child_run_id uuid,           -- start_routine
  attempts     integer not null default 0, -- of call-tool
  lease_id     uuid,           -- of the attempt that does it; whoever holds another one may not write
  lease_until  timestamptz,    -- while queued or running: when the sweep may look at it
  result       json,           -- call_tool, send_mail: what the engine is told
  error_type   text,           -- of a failed one: what a definition catches
  error        text,           -- of a failed one, for people
  prompt       text,           -- here and below, wait_for_approval: what a person is asked
  details      json,
  approvers    uuid[],         -- users who may decide besides owners and admins
  decision     routine_decision,
  decided_by   uuid,
  comment      text,
  created_at   timestamptz not null default clock_timestamp(),
  finished_at  timestamptz,
  primary key (tenant_id, id),
  unique (tenant_id, token_hash),
  foreign key (tenant_id, run_id) references routine_runs (tenant_id, id) on delete cascade
);
create index routine_steps_by_run on routine_steps (tenant_id, run_id, id);
create index routine_steps_by_turn on routine_steps (tenant_id, turn_id) where turn_id is not null;
create index routine_steps_by_child on routine_steps (tenant_id, child_run_id) where child_run_id is not null;
create index routine_steps_asked on routine_steps (tenant_id, id) where verb = 'wait_for_approval' and status = 'waiting';
create index routine_steps_due on routine_steps (lease_until) where lease_until is not null;
select protect_tenant('routine_steps');
grant select, insert, update on routine_steps to agentplatform_app;

-- A webhook's run of a routine: the record has the run's id, and is 'waiting' while the run goes on; its agent and its thread are null.
alter table thread_turns
  alter column agent_id drop not null,
  add column routine_id uuid; -- of a run whose target is a routine

-- A step that waits for a turn is over with it.
create function close_steps_of_turn() returns trigger language plpgsql as $$
begin
  update routine_steps s set status = case new.status when 'succeeded' then 'succeeded' else 'failed' end, finished_at = new.finished_at,
      error_type = case when new.status <> 'succeeded' then 'TurnFailed' end, error = new.error
    where s.tenant_id = new.tenant_id and s.turn_id = new.id and s.status = 'waiting';
  return null;
end $$;

-- refuses nothing: it touches other rows
create trigger steps_closed after update of finished_at on thread_turns
  for each row when (old.finished_at is null and new.finished_at is not null and new.callback_id is not null)
  execute function close_steps_of_turn();

-- The turns that go on for one run and for nobody else: no other run waits for them, and no person has written to them.
create function turns_of_run(of_tenant uuid, of_run uuid) returns setof uuid language sql stable
  begin atomic
    select t.id from thread_turns t
    where t.tenant_id = of_tenant and t.status in ('queued', 'running', 'waiting')
      and t.id in (select s.turn_id from routine_steps s where s.tenant_id = of_tenant and s.run_id = of_run and s.status = 'waiting')
      and not exists (select from routine_steps s where s.tenant_id = t.tenant_id and s.turn_id = t.id and s.run_id <> of_run and s.status = 'waiting')
      and not exists (select from messages m where m.tenant_id = t.tenant_id and m.thread_uuid = t.thread_uuid and m.turn_id = t.id and m.user_id is not null);
  end;

-- With a run end: its steps that are not over, which then do nothing more, and their turns; the step that waits for it; the record of a webhook's call.
create function close_run() returns trigger language plpgsql as $$
declare
  turns uuid[];
begin
  -- Turns before steps, as at a turn's end. Whether somebody else waits for one is asked again behind its lock, which whoever writes to it has.
  select coalesce(array_agg(o.id), '{}') into turns from (
    select t.id from thread_turns t where t.tenant_id = new.tenant_id and t.id in (select turns_of_run(new.tenant_id, new.id))
    order by t.id for no key update of t) o;
  turns := array(select o from turns_of_run(new.tenant_id, new.id) o where o = any(turns));
  update routine_steps s set status = 'cut', lease_id = null, lease_until = null, finished_at = new.finished_at
    where s.tenant_id = new.tenant_id and s.run_id = new.id and s.status in ('waiting', 'queued', 'running');
  update thread_turns t set status = 'cancelled', lease_id = null, lease_until = null, finished_at = new.finished_at
    where t.tenant_id = new.tenant_id and t.id = any(turns) and t.status = 'queued';
  update thread_turns t set cancel = true where t.tenant_id = new.tenant_id and t.id = any(turns) and t.status in ('running', 'waiting');
  if new.parent_run_id is not null then
    update routine_steps s set status = case new.status when 'succeeded' then 'succeeded' else 'failed' end, finished_at = new.finished_at,
        error_type = new.error, error = new.cause
      where s.tenant_id = new.tenant_id and s.child_run_id = new.id and s.status = 'waiting';
  end if;
  if new.started_by = 'webhook' then
    update thread_turns t set status = case new.status when 'succeeded' then 'succeeded' else 'failed' end, finished_at = new.finished_at,
        error = case when new.status <> 'succeeded' then coalesce(nullif(new.cause, ''), nullif(new.error, ''), 'the run ' || replace(new.status, '_', ' ')) end
      where t.tenant_id = new.tenant_id and t.id = new.id and t.finished_at is null;
  end if;
  return null;
end $$;

-- refuses nothing: it touches other rows
create trigger closed after update of finished_at on routine_runs
  for each row when (old.finished_at is null and new.finished_at is not null)
  execute function close_run();

-- When the engine has begun with a webhook's run, so has its record.
create function begin_run() returns trigger language plpgsql as $$
begin
  update thread_turns t set started_at = new.started_at where t.tenant_id = new.tenant_id and t.id = new.id and t.started_at is null;
  return null;
end $$;

-- refuses nothing: it touches other rows
create trigger begun after update of started_at on routine_runs
  for each row when (old.started_at is null and new.started_at is not null and new.started_by = 'webhook')
  execute function begin_run();

grant select (tenant_id, id, lease_until) on routine_steps to agentplatform_lookup;
create policy lookup on routine_steps for select to agentplatform_lookup using (true);

reset role;
grant create on schema public to agentplatform_lookup;
set local role agentplatform_lookup;

-- Steps that nobody works on although they are to be done.
create function lookup_due_routine_steps(most integer) returns table (tenant_id uuid, step_id uuid)
  language sql stable security definer set search_path = public
  begin atomic
    select s.tenant_id, s.id from routine_steps s where s.lease_until < clock_timestamp() order by s.lease_until limit most;
  end;

revoke execute on function lookup_due_routine_steps(integer) from public;
grant execute on function lookup_due_routine_steps(integer) to agentplatform_app;

reset role;
revoke create on schema public from agentplatform_lookup;
