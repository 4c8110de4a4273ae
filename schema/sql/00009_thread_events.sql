-- The events of threads, numbered: what a client that was away asks for.
--
-- A thread's numbers have no gaps and follow the order of commits: an event takes its number from its thread's row of thread_sequences, whose
-- lock lasts until the commit, in the transaction that stores it. A transaction takes that lock last, and for one small write: whoever else
-- writes to the thread waits for no more than that.
--
-- An event is either its own JSON or, when it tells of a message, the message's position: no text is stored twice. What subscribers must get
-- at least once is undelivered until they did. `notifications`, where that stood before, is written by the release before this one only.

set local role agentplatform_owner;

-- The newest number of each thread that has one. What changes with each event is in no index, and a page has room for the row's next version.
create table thread_sequences (
  tenant_id   uuid not null,
  thread_uuid uuid not null,
  last        integer not null, -- 2,147,483,647 at the most: 20 events a second for three years
  prune_at    timestamptz,      -- when to look for events that need not be kept; null: there are none
  primary key (tenant_id, thread_uuid),
  foreign key (tenant_id, thread_uuid) references threads (tenant_id, uuid)
) with (fillfactor = 50);
create index thread_sequences_due on thread_sequences (prune_at) where prune_at is not null;
select protect_tenant('thread_sequences');

-- No foreign keys: each chunk of a reply would lock its thread and its turn. Whoever inserts holds the thread's row of thread_sequences, and
-- an attempt holds its turn.
create table thread_events (
  tenant_id   uuid not null,
  thread_uuid uuid not null,
  sequence    integer not null, -- in the thread, from 1
  turn_id     uuid,             -- whose attempt wrote it; null: no attempt's
  event       json,             -- as it is published, but for its number; null: NewMessageEvent
  position    integer,          -- of the message that a NewMessageEvent tells of
  undelivered boolean not null,
  created_at  timestamptz not null default clock_timestamp(),
  primary key (tenant_id, thread_uuid, sequence)
);
create index thread_events_undelivered on thread_events (created_at) where undelivered;
select protect_tenant('thread_events');

grant select, insert, update on thread_sequences to agentplatform_app;
grant select, insert, update, delete on thread_events to agentplatform_app;

grant select (tenant_id, thread_uuid, sequence, undelivered, created_at) on thread_events to agentplatform_lookup;
grant select (tenant_id, thread_uuid, prune_at) on thread_sequences to agentplatform_lookup;
create policy lookup on thread_events for select to agentplatform_lookup using (true);
create policy lookup on thread_sequences for select to agentplatform_lookup using (true);

reset role;
grant create on schema public to agentplatform_lookup;
set local role agentplatform_lookup;

-- Events that should have reached the subscribers and did not: their writer died.
create function lookup_undelivered_events(age interval, most integer) returns table (tenant_id uuid, thread_uuid uuid, sequence integer)
  language sql stable security definer set search_path = public
  begin atomic
    select e.tenant_id, e.thread_uuid, e.sequence from thread_events e
    where e.undelivered and e.created_at < now() - age order by e.created_at limit most;
  end;

-- Threads that may have events which need not be kept.
create function lookup_prunable_threads(most integer) returns table (tenant_id uuid, thread_uuid uuid)
  language sql stable security definer set search_path = public
  begin atomic
    select s.tenant_id, s.thread_uuid from thread_sequences s where s.prune_at < now() order by s.prune_at limit most;
  end;

revoke execute on function lookup_undelivered_events(interval, integer), lookup_prunable_threads(integer) from public;
grant execute on function lookup_undelivered_events(interval, integer), lookup_prunable_threads(integer) to agentplatform_app;

reset role;
revoke create on schema public from agentplatform_lookup;
