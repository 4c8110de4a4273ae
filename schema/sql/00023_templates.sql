-- Agents override their template's model and runtime, and people make templates.

set local role agentplatform_owner;

-- Null takes the template's.
alter table agents add column model_id text, add column runtime text;

create index agent_templates_by_name on agent_templates (tenant_id, name collate "C", id);
