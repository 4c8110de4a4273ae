-- How many steps of routine runs a tenant has open.

set local role agentplatform_owner;

create index routine_steps_open on routine_steps (tenant_id) where status in ('waiting', 'queued', 'running');
