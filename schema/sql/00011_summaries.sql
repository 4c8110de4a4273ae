-- What the model is given in place of a long thread's older messages.
--
-- A thread's summaries are a chain: each is made of the one before and of the messages behind that. All are kept, because records of turns name
-- theirs; a thread has one for every 25,000 tokens or so.

set local role agentplatform_owner;

create table thread_summaries (
  tenant_id        uuid not null,
  thread_uuid      uuid not null,
  through_position integer not null, -- the last message that it covers
  after_position   integer not null, -- of the one before, that one's through_position; 0: it is the first
  body             text not null,
  token_count      integer not null,
  model_id         text not null,
  created_at       timestamptz not null default clock_timestamp(),
  primary key (tenant_id, thread_uuid, through_position),
  unique (tenant_id, thread_uuid, after_position), -- whoever makes them: the same messages are summarised once
  foreign key (tenant_id, thread_uuid) references threads (tenant_id, uuid)
);
select protect_tenant('thread_summaries');

grant select, insert on thread_summaries to agentplatform_app;

reset role;
