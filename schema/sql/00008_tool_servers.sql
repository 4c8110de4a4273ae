-- Tool servers: how they are spoken to, and which of their tools agents may be offered. What agents may fetch.

set local role agentplatform_owner;

create domain tool_server_transport as text check (value in ('AUTO', 'STREAMABLE_HTTP', 'SSE'));
create domain tool_server_auth as text check (value in ('NONE', 'BEARER', 'API_KEY', 'OAUTH'));
create domain tool_server_timeout as integer check (value between 1 and 480);

alter table tool_servers
  add column transport       tool_server_transport not null default 'AUTO',
  add column speaks          tool_server_transport,                     -- what it was found to speak
  add column auth            tool_server_auth not null default 'NONE',  -- the secret itself is in the store of secrets
  add column header          text,                                      -- of an API key
  add column client_id       text,                                      -- of OAuth
  add column token_url       text,                                      -- of OAuth: where it was said, or found, to be
  add column timeout         tool_server_timeout not null default 60,   -- of one call, in seconds
  add column secret_version  integer not null default 0,                -- of the secret that was kept last; 0: there is none
  add column secret_lease    timestamptz,                               -- until then somebody renews it
  add column error           text,                                      -- why it did not list its tools when it was asked last
  add column left_out        text[] not null default '{}',              -- which tools of its list are not taken, and why
  add column listed_at       timestamptz,                               -- when it listed its tools last
  add column updated_at      timestamptz not null default now();
grant update on tool_servers to agentplatform_app;

-- A tool is offered while its hash is the approved one: as a person saw it. What was approved is kept, to show what has changed.
create table tool_server_tools (
  tenant_id            uuid not null,
  server_id            uuid not null,
  name                 text collate "C" not null, -- as agents are granted and offered it: <server>__<tool>
  tool                 text not null,             -- as the server calls it
  description          text not null,
  schema               json not null,             -- of its input
  idempotent           boolean not null,
  hash                 text not null,             -- SHA-256 of the four above, lower-case hex
  approved_hash        text,
  approved_description text,
  approved_schema      json,
  approved_by          uuid,
  approved_at          timestamptz,
  primary key (tenant_id, server_id, name),
  unique (tenant_id, name),
  foreign key (tenant_id, server_id) references tool_servers (tenant_id, id)
);
select protect_tenant('tool_server_tools');
grant select, insert, update, delete on tool_server_tools to agentplatform_app;

-- Hosts that http_fetch may ask: exact names, or *.name for all below it. An agent's null takes its template's.
alter table agent_templates add column fetch_hosts text[] not null default '{}';
alter table agents add column fetch_hosts text[];

reset role;
