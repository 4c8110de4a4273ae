-- Executions of workflows: what the workflow engine was asked to do for a tenant, and what came of it.

set local role agentplatform_owner;

create domain execution_status as text check (value in ('running', 'succeeded', 'failed'));

-- One row an execution, by the ARN that the engine gave it: what the engine asks for twice is done once.
create table executions (
  tenant_id   uuid not null references tenants (id), -- one that started no turn has no other tie to its tenant
  id          uuid not null,
  arn         text collate "C" not null,
  workflow    text not null,       -- of the state machine: auto-thread
  turn_id     uuid,                -- that it started; null: none
  status      execution_status not null default 'running',
  error_type  text,                -- of a failed one, for programs
  error       text,                -- of a failed one, for people
  started_at  timestamptz not null default clock_timestamp(),
  finished_at timestamptz,
  primary key (tenant_id, id),
  unique (tenant_id, arn),
  foreign key (tenant_id, turn_id) references thread_turns (tenant_id, id)
);
select protect_tenant('executions');

grant select, insert, update on executions to agentplatform_app;

reset role;
