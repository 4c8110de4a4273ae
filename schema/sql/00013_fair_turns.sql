-- How many turns of a tenant run at a time: what a tenant asks for at once must not keep the others waiting.

set local role agentplatform_owner;

alter table tenants add column turns_at_once integer not null default 50 check (turns_at_once between 1 and 10000);
grant update (name, turns_at_once) on tenants to agentplatform_app;

-- Queued, and turned away by a claim: as many of the tenant's turns ran as may. Whoever ends one has the one that waits longest dispatched.
alter table thread_turns add column put_off boolean not null default false;
create index thread_turns_put_off on thread_turns (tenant_id, queued_at) where put_off;
