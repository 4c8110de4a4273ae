-- Guardrails: what a tenant's agents may not be told, do, hear or say.

set local role agentplatform_owner;

create domain guardrail_kind as text check (value in ('RULES', 'BEDROCK'));

create table guardrails (
  tenant_id              uuid not null references tenants (id),
  id                     uuid not null,
  name                   text collate "C" not null,
  description            text,
  kind                   guardrail_kind not null,
  rules                  json not null default '[]',
  bedrock                json,
  blocked_input_message  text,
  blocked_output_message text,
  created_at             timestamptz not null default now(),
  updated_at             timestamptz not null default now(),
  primary key (tenant_id, id)
);
create index guardrails_by_name on guardrails (tenant_id, name, id);
select protect_tenant('guardrails');

-- An agent's own guardrail; null takes its template's. Who writes it holds the guardrail meanwhile, and who deletes a guardrail looks for it: that
-- stands in for a foreign key, which the template's column, a text, could not have.
alter table agents add column guardrail_id uuid;

grant select, insert, update, delete on guardrails to agentplatform_app;

reset role;
