-- Retention: how long a tenant keeps what its turns leave besides messages and their records, and how what is too old is found.
--
-- A day is 24 hours. Nothing here changes a turn that is not over.

set local role agentplatform_owner;

create domain retention_days as integer check (value between 1 and 3650);

-- What a tenant has set; null, and no row, is the default of retention_terms.
create table retention (
  tenant_id       uuid primary key references tenants (id),
  steps_days      retention_days, -- of a turn's steps, from its end
  payload_days    retention_days, -- of what came with a webhook's call, from its turn's end
  evaluation_days retention_days, -- of an evaluation's runs, from their end
  updated_at      timestamptz not null default now()
);
select protect_tenant('retention');
grant select, insert, update on retention to agentplatform_app;

-- How long a tenant keeps each, in days.
create function retention_terms(of_tenant uuid) returns table (steps_days integer, payload_days integer, evaluation_days integer)
  language sql stable
  begin atomic
    select coalesce(r.steps_days::integer, 90), coalesce(r.payload_days::integer, 90), coalesce(r.evaluation_days::integer, 365)
    from (values (of_tenant)) t (id) left join retention r on r.tenant_id = t.id;
  end;

alter table thread_turns
  add column steps_pruned_at timestamptz,   -- when its steps were deleted
  add column payload_pruned_at timestamptz; -- when context_snapshot was; model_payload then says so to the model
-- A turn is in these until it is pruned, so they hold no more than what is kept.
create index thread_turns_steps on thread_turns (tenant_id, finished_at) where steps_pruned_at is null and finished_at is not null;
create index thread_turns_payloads on thread_turns (tenant_id, finished_at) where webhook_id is not null and payload_pruned_at is null and finished_at is not null;

create index client_tokens_by_age on client_tokens (tenant_id, created_at);
create index executions_by_age on executions (tenant_id, started_at);
create index evaluation_runs_by_end on evaluation_runs (tenant_id, finished_at) where finished_at is not null;

grant delete on turn_steps, executions to agentplatform_app;

-- ---- Texts of prompts: kept while a turn that was given them has its steps
--
-- Turns share them, so nobody counts who does: a text knows when it was last given, to the day. A turn that is over has its steps for the same
-- number of days, so a text that nobody was given for two days longer is no such turn's.

alter table prompt_texts add column used_at timestamptz not null default now();
create index prompt_texts_by_use on prompt_texts (tenant_id, used_at);
grant update (used_at), delete on prompt_texts to agentplatform_app;

-- Keeps a text that a turn is given. It is touched before it is looked for: whoever deletes it meanwhile is waited for. Nobody locks a text that was
-- given today.
create function keep_prompt_text(sum bytea, of_text text) returns void language plpgsql as $$
begin
  update prompt_texts p set used_at = now() where p.tenant_id = current_tenant() and p.sha256 = sum and p.used_at < now() - interval '1 day';
  insert into prompt_texts (tenant_id, sha256, body) values (current_tenant(), sum, of_text) on conflict do nothing;
end $$;

-- A turn that waited for a person may end long after it was given them.
create function touch_prompt_texts() returns trigger language plpgsql as $$
begin
  update prompt_texts p set used_at = now()
    from (select o.sha256 from prompt_texts o where o.tenant_id = new.tenant_id and o.used_at < now() - interval '1 day'
      and o.sha256 in (decode(new.prompt->>'system', 'hex'), decode(new.prompt->>'tools', 'hex')) order by o.sha256 for no key update) o
    where p.tenant_id = new.tenant_id and p.sha256 = o.sha256;
  return null;
end $$;

-- refuses nothing: it touches other rows, of texts that are there
create trigger touched after update of finished_at on thread_turns
  for each row when (old.finished_at is null and new.finished_at is not null and new.prompt is not null and new.started_at < new.finished_at - interval '1 hour')
  execute function touch_prompt_texts();

-- ---- Whose is this?

grant select (tenant_id, steps_days, payload_days, evaluation_days) on retention to agentplatform_lookup;
grant select (webhook_id, steps_pruned_at, payload_pruned_at) on thread_turns to agentplatform_lookup;
grant select (tenant_id, used_at) on prompt_texts to agentplatform_lookup;
grant select (tenant_id, created_at) on client_tokens to agentplatform_lookup;
grant select (tenant_id, started_at) on executions to agentplatform_lookup;
grant select (finished_at) on evaluation_runs to agentplatform_lookup;
create policy lookup on retention for select to agentplatform_lookup using (true);
create policy lookup on prompt_texts for select to agentplatform_lookup using (true);
create policy lookup on client_tokens for select to agentplatform_lookup using (true);
create policy lookup on executions for select to agentplatform_lookup using (true);
grant execute on function retention_terms(uuid) to agentplatform_lookup;

reset role;
grant create on schema public to agentplatform_lookup;
set local role agentplatform_lookup;

-- Tenants that may have something too old at that moment: a few looks into indexes for each tenant there is.
create function lookup_prunable_tenants(at timestamptz, token_age interval, execution_age interval, text_grace interval) returns table (tenant_id uuid)
  language sql stable security definer set search_path = public
  begin atomic
    select t.id from tenants t cross join lateral retention_terms(t.id) k
    where coalesce( -- neither exists nor any row will do: a plan for those may read a whole table
      (select true from thread_turns x where x.tenant_id = t.id and x.steps_pruned_at is null and x.finished_at < at - make_interval(hours => 24 * k.steps_days) order by x.finished_at limit 1),
      (select true from thread_turns x where x.tenant_id = t.id and x.webhook_id is not null and x.payload_pruned_at is null
        and x.finished_at < at - make_interval(hours => 24 * k.payload_days) order by x.finished_at limit 1),
      (select true from prompt_texts x where x.tenant_id = t.id and x.used_at < at - make_interval(hours => 24 * k.steps_days) - text_grace order by x.used_at limit 1),
      (select true from client_tokens x where x.tenant_id = t.id and x.created_at < at - token_age order by x.created_at limit 1),
      (select true from executions x where x.tenant_id = t.id and x.started_at < at - execution_age order by x.started_at limit 1),
      (select true from evaluation_runs x where x.tenant_id = t.id and x.finished_at < at - make_interval(hours => 24 * k.evaluation_days) order by x.finished_at limit 1))
    order by t.id;
  end;

revoke execute on function lookup_prunable_tenants(timestamptz, interval, interval, interval) from public;
grant execute on function lookup_prunable_tenants(timestamptz, interval, interval, interval) to agentplatform_app;

reset role;
revoke create on schema public from agentplatform_lookup;
