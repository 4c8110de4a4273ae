-- Callbacks: tasks of the workflow engine that wait to be told how something of the platform has ended. And what an execution of a schedule is, since
-- one may wait, and may take several turns.

set local role agentplatform_owner;

-- A row is there from the moment at which the engine gave its token out until the engine has been told, or says that the task is over.
create table callbacks (
  tenant_id  uuid not null,
  id         uuid not null,
  token      text not null,  -- the engine's; of no use without the right to the engine, and in no log
  token_hash bytea not null, -- SHA-256: one row a token
  turn_id    uuid,           -- whose end is told; null: whoever knows the answer says it
  heartbeat  boolean not null default false, -- the engine is told now and then that this goes on
  due_at     timestamptz,    -- since when there is something to tell; null: not yet
  output     json,           -- what is told, if nothing failed and it is no turn
  error_type text,           -- what is told of a failure, if it is no turn
  error      text,
  created_at timestamptz not null default clock_timestamp(),
  next_at    timestamptz not null, -- when the sweep may look at it
  primary key (tenant_id, id),
  unique (tenant_id, token_hash)
);
create index callbacks_by_turn on callbacks (tenant_id, turn_id) where turn_id is not null;
create index callbacks_by_next on callbacks (next_at);
select protect_tenant('callbacks');
grant select, insert, update, delete on callbacks to agentplatform_app;

-- Of the turn's newest callback: that there is one.
alter table thread_turns add column callback_id uuid;

-- What waits for a turn is due with the turn's end, however it ends.
create function tell_turn() returns trigger language plpgsql as $$
begin
  update callbacks c set due_at = clock_timestamp(), next_at = clock_timestamp()
    where c.tenant_id = new.tenant_id and c.turn_id = new.id and c.due_at is null;
  return null;
end $$;

-- refuses nothing: it touches other rows
create trigger told after update of finished_at on thread_turns
  for each row when (old.finished_at is null and new.finished_at is not null and new.callback_id is not null)
  execute function tell_turn();

-- ---- Executions of schedules

alter domain execution_status drop constraint execution_status_check;
-- refuses nothing: it allows a status more
alter domain execution_status add constraint execution_status_check check (value in ('running', 'succeeded', 'failed', 'skipped'));
create domain execution_trigger as text check (value in ('scheduled', 'late', 'manual'));
create domain execution_stop as text check (value in ('goalReached', 'maxIterations', 'budget', 'failed', 'takenOver'));

alter table executions
  alter column arn drop not null, -- of one that a person asked for, until the engine has begun with it
  alter column workflow set default 'auto-thread',
  add column schedule_id uuid,           -- no foreign key: executions outlive their schedule
  add column occurrence timestamptz,     -- that it is of; null: a person asked for it
  add column trigger execution_trigger not null default 'scheduled',
  add column routine_run_id uuid,        -- that it started; null: none
  add column loop json,                  -- the schedule's when it began; null: one turn
  add column stop_reason execution_stop, -- why a loop made no further turn; null: it has, or is none
  add column look_after timestamptz;     -- while the engine has it: when the sweep may ask how it is
-- An occurrence is run once, whoever fires how often.
-- refuses nothing: the previous release's executions have no occurrence
create unique index executions_occurrence on executions (tenant_id, schedule_id, occurrence) where occurrence is not null;
create index executions_to_look_at on executions (look_after) where look_after is not null;
create index executions_by_schedule on executions (tenant_id, schedule_id, id) where schedule_id is not null;

-- One turn of an execution that loops, and how it was rated by the loop's goal.
create table execution_iterations (
  tenant_id           uuid not null,
  execution_id        uuid not null,
  number              integer not null, -- from 1
  turn_id             uuid not null,
  scores              json,        -- of the goal's evaluators; null: not rated
  goal_reached        boolean,     -- null: not rated
  grading_tokens      bigint not null default 0, -- what graders used, in and out
  grading_cost_micros bigint not null default 0, -- as far as prices are known
  started_at          timestamptz not null default clock_timestamp(),
  finished_at         timestamptz, -- its turn is over, and rated if it is to be
  primary key (tenant_id, execution_id, number),
  foreign key (tenant_id, execution_id) references executions (tenant_id, id) on delete cascade,
  foreign key (tenant_id, turn_id) references thread_turns (tenant_id, id)
);
select protect_tenant('execution_iterations');
grant select, insert, update on execution_iterations to agentplatform_app;

grant select (tenant_id, id, next_at) on callbacks to agentplatform_lookup;
grant select (id, schedule_id, arn, look_after) on executions to agentplatform_lookup;
create policy lookup on callbacks for select to agentplatform_lookup using (true);

reset role;
grant create on schema public to agentplatform_lookup;
set local role agentplatform_lookup;

-- Callbacks that the sweep may look at: due ones that nobody has told, and those that want a heartbeat.
create function lookup_callbacks(most integer) returns table (tenant_id uuid, callback_id uuid)
  language sql stable security definer set search_path = public
  begin atomic
    select c.tenant_id, c.id from callbacks c where c.next_at <= clock_timestamp() order by c.next_at limit most;
  end;

-- Executions that have gone on for so long that the engine may be asked whether they do.
create function lookup_long_executions(most integer) returns table (tenant_id uuid, execution_id uuid, schedule_id uuid, arn text)
  language sql stable security definer set search_path = public
  begin atomic
    select e.tenant_id, e.id, e.schedule_id, e.arn from executions e where e.look_after < clock_timestamp() order by e.look_after limit most;
  end;

revoke execute on function lookup_callbacks(integer), lookup_long_executions(integer) from public;
grant execute on function lookup_callbacks(integer), lookup_long_executions(integer) to agentplatform_app;

reset role;
revoke create on schema public from agentplatform_lookup;
