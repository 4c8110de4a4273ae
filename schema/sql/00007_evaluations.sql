-- How answers are rated: evaluators of agents, scores of their turns, and evaluations, which give an agent a list of cases.

set local role agentplatform_owner;

-- Lists of evaluators; an agent's null takes its template's, its empty list is none.
alter table agents add column evaluators json;
alter table agent_templates add column evaluators json;

-- Whether a turn of an agent is rated, by the columns of the agent and of its template.
create function has_evaluators(own json, of_template json) returns boolean
  language sql immutable parallel safe
  return coalesce(json_array_length(coalesce(own, of_template)), 0) > 0;

alter table thread_turns
  add column score_after timestamptz, -- of a turn whose scores are due: when the sweep may look at it
  add column grading_input_tokens bigint not null default 0, -- what graders used; the turn's own is in input_tokens
  add column grading_output_tokens bigint not null default 0,
  add column grading_cost_micros bigint not null default 0; -- as far as prices are known
create index thread_turns_unscored on thread_turns (score_after) where score_after is not null;

create domain evaluation_run_status as text check (value in ('running', 'finished', 'cancelled'));
create domain evaluation_result_status as text check (value in ('waiting', 'running', 'passed', 'failed', 'cancelled'));

create table evaluations (
  tenant_id      uuid not null references tenants (id),
  id             uuid not null,
  name           text collate "C" not null,
  agent_id       uuid not null,
  evaluators     json not null,
  concurrency    integer not null,
  pass_threshold numeric not null,
  case_count     integer not null,
  version        integer not null default 1,
  run_count      integer not null default 0, -- the last run's number
  created_at     timestamptz not null,
  updated_at     timestamptz not null,
  primary key (tenant_id, id),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id)
);
create index evaluations_by_name on evaluations (tenant_id, name, id);
select protect_tenant('evaluations');

-- The cases of an evaluation's present version.
create table evaluation_cases (
  tenant_id     uuid not null,
  evaluation_id uuid not null,
  number        integer not null, -- from 1
  key           text not null,    -- of its input: the same case in another version
  input         text not null,
  expected      text,
  metadata      json,
  primary key (tenant_id, evaluation_id, number),
  foreign key (tenant_id, evaluation_id) references evaluations (tenant_id, id)
);
select protect_tenant('evaluation_cases');

-- A run holds what it began with: a later version of its evaluation changes nothing of it.
create table evaluation_runs (
  tenant_id      uuid not null,
  id             uuid not null,
  evaluation_id  uuid not null,
  number         integer not null, -- of the evaluation, from 1
  version        integer not null, -- of the evaluation
  agent_id       uuid not null,
  evaluators     json not null,
  concurrency    integer not null,
  pass_threshold numeric not null,
  case_count     integer not null,
  status         evaluation_run_status not null default 'running',
  lease_id       uuid,        -- of the worker that goes on with it; null: nobody does
  lease_until    timestamptz, -- while it is running: when the sweep may look at it
  user_id        uuid not null, -- who started it
  created_at     timestamptz not null,
  finished_at    timestamptz,
  primary key (tenant_id, id),
  unique (tenant_id, evaluation_id, number),
  foreign key (tenant_id, evaluation_id) references evaluations (tenant_id, id),
  foreign key (tenant_id, agent_id) references agents (tenant_id, id)
);
create unique index evaluation_runs_running on evaluation_runs (tenant_id, evaluation_id) where status = 'running';
create index evaluation_runs_due on evaluation_runs (lease_until) where lease_until is not null;
select protect_tenant('evaluation_runs');

-- A case of a run, and what came of it: one turn at the most, in a thread of its own.
create table evaluation_results (
  tenant_id   uuid not null,
  run_id      uuid not null,
  number      integer not null,
  key         text not null,
  input       text not null,
  expected    text,
  metadata    json,
  status      evaluation_result_status not null default 'waiting',
  turn_id     uuid,
  scores      json not null default '[]',
  error       text,    -- why there are no scores
  tries       integer not null default 0, -- of grading that failed
  opened_at   timestamptz,
  finished_at timestamptz,
  primary key (tenant_id, run_id, number),
  foreign key (tenant_id, run_id) references evaluation_runs (tenant_id, id),
  foreign key (tenant_id, turn_id) references thread_turns (tenant_id, id)
);
create unique index evaluation_results_turn on evaluation_results (tenant_id, turn_id) where turn_id is not null;
create index evaluation_results_open on evaluation_results (tenant_id, run_id, number) where status in ('waiting', 'running');
select protect_tenant('evaluation_results');

grant select, insert, update, delete on evaluations, evaluation_cases, evaluation_runs, evaluation_results to agentplatform_app;

grant select (score_after) on thread_turns to agentplatform_lookup;
grant select (tenant_id, id, lease_until) on evaluation_runs to agentplatform_lookup;
create policy lookup on evaluation_runs for select to agentplatform_lookup using (true);

reset role;
grant create on schema public to agentplatform_lookup;
set local role agentplatform_lookup;

-- Turns whose scores nobody has written: the call was lost, or whoever rated them died.
create function lookup_unscored_turns(most integer) returns table (tenant_id uuid, turn_id uuid)
  language sql stable security definer set search_path = public
  begin atomic
    select t.tenant_id, t.id from thread_turns t where t.score_after < clock_timestamp() order by t.score_after limit most;
  end;

-- Runs that nobody goes on with.
create function lookup_due_evaluation_runs(most integer) returns table (tenant_id uuid, run_id uuid)
  language sql stable security definer set search_path = public
  begin atomic
    select r.tenant_id, r.id from evaluation_runs r where r.lease_until < clock_timestamp() order by r.lease_until limit most;
  end;

revoke execute on function lookup_unscored_turns(integer), lookup_due_evaluation_runs(integer) from public;
grant execute on function lookup_unscored_turns(integer), lookup_due_evaluation_runs(integer) to agentplatform_app;

reset role;
revoke create on schema public from agentplatform_lookup;
