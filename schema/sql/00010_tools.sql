-- What an agent grants itself, turns that wait for a person, and turns that a person ends.

set local role agentplatform_owner;

-- Null takes the template's.
alter table agents add column tools text[], add column approvals text[];
alter table agent_templates add column approvals text[] not null default '{}'; -- of the granted tools, those whose calls a person approves

alter domain turn_status drop constraint turn_status_check;
-- refuses nothing: it allows more than before
alter domain turn_status add constraint turn_status_check check (value in ('queued', 'running', 'waiting', 'succeeded', 'failed', 'interrupted', 'cancelled'));
alter domain step_status drop constraint step_status_check;
-- refuses nothing: it allows more than before
alter domain step_status add constraint step_status_check check (value in ('waiting', 'started', 'finished'));

create domain turn_waits as text check (value in ('answer', 'approval'));

alter table thread_turns
  add column cancel boolean not null default false,  -- a person ends it
  add column waits_for turn_waits,                   -- of a waiting one
  add column said_steps integer not null default 0,  -- up to this step, what the model said is in messages
  add column retry_of uuid,                          -- the turn that this one repeats
  add column model_payload json,                     -- what the model is given in place of context_snapshot, where a guardrail has masked or blocked that
  add column prompt json;                            -- what its model calls began with: texts by their hashes, messages by their positions

-- A waiting turn keeps its thread as a running one does.
-- refuses nothing: the previous release has no turns that wait
create unique index thread_turns_waiting on thread_turns (tenant_id, thread_uuid) where status = 'waiting';

-- A turn has one reply, and one more for each time that it stopped for a person.
alter table messages
  add column part integer not null default 0,
  add column tool_call_id text, -- of an answer: the call that asked
  add column model_body text,   -- what the model is given in place of the body, where a guardrail has masked or blocked that
  add column checked boolean not null default false; -- a guardrail has decided what the model is given of it
-- refuses nothing: the previous release writes one reply a turn, which is part 0
create unique index messages_part on messages (tenant_id, turn_id, part) where role = 'assistant';
drop index messages_reply;

-- Calls that a person must approve before they run.
create domain approval_status as text check (value in ('pending', 'approved', 'denied'));

create table tool_approvals (
  tenant_id    uuid not null,
  turn_id      uuid not null,
  step         integer not null, -- of the turn: a model may give an id twice, and what was approved once is one call
  tool_call_id text not null,
  name         text not null,
  input        json not null,
  status       approval_status not null default 'pending',
  user_id      uuid,          -- who decided; null: nobody in time
  reason       text,          -- of a denial
  created_at   timestamptz not null default clock_timestamp(),
  decided_at   timestamptz,
  primary key (tenant_id, turn_id, step),
  foreign key (tenant_id, turn_id) references thread_turns (tenant_id, id)
);
select protect_tenant('tool_approvals');

-- Texts that models were given again and again: system prompts and tool lists, each once.
create table prompt_texts (
  tenant_id uuid not null references tenants (id),
  sha256    bytea not null check (length(sha256) = 32),
  body      text not null,
  primary key (tenant_id, sha256)
);
select protect_tenant('prompt_texts');

grant select, insert, update on tool_approvals to agentplatform_app;
grant select, insert on prompt_texts to agentplatform_app;
grant update (model_body, checked) on messages to agentplatform_app;

reset role;
grant create on schema public to agentplatform_lookup;
set local role agentplatform_lookup;

-- Turns that nobody works on although they could be: queued in an idle thread and not dispatched, running with a lease that ran out, or waiting for
-- longer than a person has.
create or replace function lookup_due_turns(most integer) returns table (tenant_id uuid, turn_id uuid)
  language sql stable security definer set search_path = public
  begin atomic
    select t.tenant_id, t.id from thread_turns t
    where t.status in ('queued', 'running', 'waiting') and t.lease_until < clock_timestamp()
      and (t.status <> 'queued' or not exists (select from thread_turns r
        where r.tenant_id = t.tenant_id and r.thread_uuid = t.thread_uuid and r.status in ('running', 'waiting')))
    order by t.lease_until limit most;
  end;

reset role;
revoke create on schema public from agentplatform_lookup;
