-- Connections: a user's link to an outside service, by OAuth 2. The tokens are in the store of secrets.

set local role agentplatform_owner;

create domain connection_status as text check (value in ('active', 'reconnect'));

create table connections (
  tenant_id        uuid not null,
  id               uuid not null,
  user_id          uuid not null, -- no foreign key: of a user who is deleted, the tokens are deleted after that
  integration_id   uuid not null, -- whose OAuth client it was made with
  provider         integration_provider not null,
  provider_user_id text collate "C" not null, -- who the user is there
  account          text,          -- of the provider: a workspace, a site
  account_name     text,
  scopes           text[] not null default '{}', -- that were granted
  status           connection_status not null default 'active',
  reason           text,          -- why the user has to connect again
  secret_version   integer not null default 0, -- of the tokens that were kept last
  secret_lease     timestamptz,   -- until then somebody renews them
  created_at       timestamptz not null default clock_timestamp(),
  updated_at       timestamptz not null default clock_timestamp(),
  primary key (tenant_id, id),
  unique (tenant_id, provider, provider_user_id), -- one person there is one here, by whichever integration
  foreign key (tenant_id, integration_id) references integrations (tenant_id, id)
);
create index connections_by_user on connections (tenant_id, user_id, id);
create index connections_by_integration on connections (tenant_id, integration_id);
select protect_tenant('connections');
grant select, insert, update, delete on connections to agentplatform_app;

-- A connection that a user has begun to make: good once, for ten minutes, and for that user.
create table connection_states (
  tenant_id      uuid not null,
  state_hash     bytea not null, -- SHA-256; the state itself is in the user's browser only
  user_id        uuid not null,
  integration_id uuid not null,
  redirect_uri   text not null,
  expires_at     timestamptz not null,
  primary key (tenant_id, state_hash),
  foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade,
  foreign key (tenant_id, integration_id) references integrations (tenant_id, id) on delete cascade
);
create index connection_states_by_user on connection_states (tenant_id, user_id);
select protect_tenant('connection_states');
grant select, insert, delete on connection_states to agentplatform_app;

reset role;
