-- Budgets: what a tenant, a space, an agent may spend in a month (UTC) and what one turn may use; and what was used.
--
-- Nothing is counted where turns meet. A turn that ends leaves a row of what it used; one writer for each tenant (meter_usage) adds those rows
-- up. What a budget has spent is the sum of both and of what unfinished turns hold, in one snapshot; only who reserves takes a lock, and only
-- where there is a budget. So a turn of a tenant without budgets locks nothing and waits for nobody.

set local role agentplatform_owner;

create domain budget_scope as text check (value in ('tenant', 'space', 'agent'));

-- Also the lock of those who reserve: nobody else locks its rows but who sets them.
create table budgets (
  tenant_id       uuid not null references tenants (id),
  scope           budget_scope not null,
  scope_id        uuid not null, -- of the tenant itself, a space or an agent
  monthly_micros  bigint,        -- the cap of a month, millionths of a US dollar; null: none
  tokens_per_turn bigint,        -- null: no cap
  created_at      timestamptz not null default now(),
  updated_at      timestamptz not null default now(),
  primary key (tenant_id, scope_id)
);
select protect_tenant('budgets');

-- What an unfinished turn may still cost, where a budget counts money. It is gone with the turn's end, in the same transaction.
create table budget_reservations (
  tenant_id       uuid not null,
  turn_id         uuid not null,
  agent_id        uuid not null,
  space_id        uuid not null,
  reserved_micros bigint not null,           -- all in all, with what is spent
  spent_micros    bigint not null default 0, -- so far
  created_at      timestamptz not null default clock_timestamp(),
  primary key (tenant_id, turn_id),
  foreign key (tenant_id, turn_id) references thread_turns (tenant_id, id)
) with (fillfactor = 70); -- room for the row's next version: it changes with each model call
select protect_tenant('budget_reservations');

-- A part of a cap that was spent, once for each month and cap.
create table budget_warnings (
  tenant_id      uuid not null,
  scope_id       uuid not null,
  month          date not null,        -- its first day
  monthly_micros bigint not null,      -- the cap
  percent        smallint not null,    -- 50, 80, 100
  scope          budget_scope not null,
  spent_micros   bigint not null,
  crossed_at     timestamptz not null, -- the end of the turn that did it, or when the cap was set
  primary key (tenant_id, month, scope_id, monthly_micros, percent)
);
select protect_tenant('budget_warnings');

-- ---- Usage

alter table thread_turns
  add column if not exists cache_read_tokens bigint not null default 0, -- of input_tokens
  add column if not exists cache_write_tokens bigint not null default 0;

-- What ended turns used and nobody has added up yet. A row may take away: what a turn's record said before it was changed.
create table usage_unmetered (
  tenant_id          uuid not null,
  id                 bigint not null generated always as identity,
  ended_at           timestamptz not null,
  day                date not null, -- UTC
  agent_id           uuid not null,
  space_id           uuid not null,
  model              text collate "C" not null, -- '': none was asked
  turns              integer not null,
  unpriced_turns     integer not null,          -- of a model without a price
  input_tokens       bigint not null,           -- those of the cache too
  output_tokens      bigint not null,
  cache_read_tokens  bigint not null,
  cache_write_tokens bigint not null,
  cost_micros        bigint not null,
  primary key (tenant_id, id)
);
select protect_tenant('usage_unmetered');

create table usage_days (
  tenant_id          uuid not null,
  day                date not null,
  agent_id           uuid not null,
  space_id           uuid not null,
  model              text collate "C" not null,
  turns              bigint not null,
  unpriced_turns     bigint not null,
  input_tokens       bigint not null,
  output_tokens      bigint not null,
  cache_read_tokens  bigint not null,
  cache_write_tokens bigint not null,
  cost_micros        bigint not null,
  primary key (tenant_id, day, agent_id, space_id, model)
);
select protect_tenant('usage_days');

-- The same cost by whatever may have a budget.
create table usage_months (
  tenant_id   uuid not null,
  scope_id    uuid not null, -- of the tenant itself, a space or an agent
  month       date not null, -- its first day
  cost_micros bigint not null,
  primary key (tenant_id, scope_id, month)
);
select protect_tenant('usage_months');

grant select, insert, update, delete on budgets, budget_reservations to agentplatform_app;
grant select, insert on budget_warnings to agentplatform_app;
grant select, insert, delete on usage_unmetered to agentplatform_app;
grant select, insert, update on usage_days, usage_months to agentplatform_app;

-- What the record of an ended turn says is what is metered, whoever ends the turn and however often its record changes. What the turn had
-- reserved is free from then on; what it had spent of it is spent, also when its record does not know.
create function meter_turn() returns trigger language plpgsql as $$
declare
  held bigint;
  home uuid;
  row_id bigint;
begin
  select h.space_id into home from threads h where h.tenant_id = new.tenant_id and h.uuid = new.thread_uuid;
  if not found then
    return null; -- its target could not be started
  end if;
  if old.finished_at is not null then
    insert into usage_unmetered (tenant_id, ended_at, day, agent_id, space_id, model, turns, unpriced_turns, input_tokens, output_tokens,
        cache_read_tokens, cache_write_tokens, cost_micros)
      values (old.tenant_id, old.finished_at, (old.finished_at at time zone 'UTC')::date, old.agent_id, home, coalesce(old.model, ''), -1,
        -(old.cost_micros is null)::integer, -old.input_tokens, -old.output_tokens, -old.cache_read_tokens, -old.cache_write_tokens, -coalesce(old.cost_micros, 0));
  end if;
  if new.finished_at is not null then
    delete from budget_reservations r where r.tenant_id = new.tenant_id and r.turn_id = new.id returning r.spent_micros into held;
    insert into usage_unmetered (tenant_id, ended_at, day, agent_id, space_id, model, turns, unpriced_turns, input_tokens, output_tokens,
        cache_read_tokens, cache_write_tokens, cost_micros)
      values (new.tenant_id, new.finished_at, (new.finished_at at time zone 'UTC')::date, new.agent_id, home, coalesce(new.model, ''), 1,
        (new.cost_micros is null)::integer, new.input_tokens, new.output_tokens, new.cache_read_tokens, new.cache_write_tokens,
        greatest(coalesce(new.cost_micros, 0), coalesce(held, 0)))
      returning id into row_id;
  end if;
  -- So that what is not added up yet stays a few hundred rows a tenant, however busy it is. What fails here fails meter_usage's own caller, too,
  -- who says so; a turn ends all the same.
  if row_id % 256 = 0 then
    begin
      perform meter_usage(1024);
    exception when others then
      null;
    end;
  end if;
  return null;
end $$;

-- refuses nothing: it adds rows of its own, of a turn that is there
create trigger metered after update of finished_at, model, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_micros on thread_turns
  for each row when ((old.finished_at is not null or new.finished_at is not null)
    and (old.finished_at, old.model, old.input_tokens, old.output_tokens, old.cache_read_tokens, old.cache_write_tokens, old.cost_micros)
      is distinct from (new.finished_at, new.model, new.input_tokens, new.output_tokens, new.cache_read_tokens, new.cache_write_tokens, new.cost_micros))
  execute function meter_turn();

-- What of the tenant's budgets concerns a turn, without any lock.
create function budget_terms(of_agent uuid, of_space uuid) returns table (capped boolean, tokens_per_turn bigint)
  language sql stable
  begin atomic
    select count(b.monthly_micros) > 0, min(b.tokens_per_turn) from budgets b where b.scope_id in (current_tenant(), of_space, of_agent);
  end;

-- What was spent in the month, by ended and unfinished turns, and what the unfinished ones may still spend: in the caller's snapshot.
create function budget_state(of_scope uuid, of_month date) returns table (spent bigint, reserved bigint)
  language sql stable
  begin atomic
    select (coalesce((select m.cost_micros from usage_months m where m.scope_id = of_scope and m.month = of_month), 0)
        + coalesce((select sum(u.cost_micros) from usage_unmetered u
            where of_scope in (u.tenant_id, u.space_id, u.agent_id) and u.day >= of_month and u.day < of_month + interval '1 month'), 0)
        + coalesce(sum(r.spent_micros), 0))::bigint,
      coalesce(sum(greatest(r.reserved_micros - r.spent_micros, 0)), 0)::bigint
    from budget_reservations r where of_scope in (r.tenant_id, r.space_id, r.agent_id);
  end;

-- The budget that concerns a turn and falls shortest of so much more, beside what is spent and reserved; no row: each covers it. One pass for all.
create function short_budget(of_agent uuid, of_space uuid, of_month date, more bigint) returns table (scope text, cap bigint)
  language sql stable
  begin atomic
    with ended as (
        select coalesce(sum(u.cost_micros), 0) as tenant, coalesce(sum(u.cost_micros) filter (where u.space_id = of_space), 0) as space,
          coalesce(sum(u.cost_micros) filter (where u.agent_id = of_agent), 0) as agent
        from usage_unmetered u where u.day >= of_month and u.day < of_month + interval '1 month'),
      held as (
        select coalesce(sum(greatest(r.reserved_micros, r.spent_micros)), 0) as tenant,
          coalesce(sum(greatest(r.reserved_micros, r.spent_micros)) filter (where r.space_id = of_space), 0) as space,
          coalesce(sum(greatest(r.reserved_micros, r.spent_micros)) filter (where r.agent_id = of_agent), 0) as agent
        from budget_reservations r),
      standing as (
        select b.scope, b.scope_id, b.monthly_micros, b.monthly_micros - coalesce(m.cost_micros, 0) - case b.scope
            when 'tenant' then ended.tenant + held.tenant when 'space' then ended.space + held.space else ended.agent + held.agent end as remains
        from budgets b left join usage_months m on m.tenant_id = b.tenant_id and m.scope_id = b.scope_id and m.month = of_month cross join ended cross join held
        where b.scope_id in (current_tenant(), of_space, of_agent) and b.monthly_micros is not null)
    select s.scope::text, s.monthly_micros from standing s where s.remains < more order by s.remains, s.scope_id limit 1;
  end;

-- Nobody else reserves from the budgets that concern a turn until the transaction ends. Always in one order, so that two never wait for each other.
create function lock_budgets(of_agent uuid, of_space uuid) returns void language plpgsql as $$
begin
  perform from budgets b where b.scope_id in (current_tenant(), of_space, of_agent) and b.monthly_micros is not null order by b.scope_id for no key update;
end $$;

-- Sets aside what a turn may cost, or stops the transaction (APL02, the budget that is shortest in DETAIL).
create function reserve_turn(for_turn uuid, of_agent uuid, of_space uuid, micros bigint, of_month date) returns void language plpgsql as $$
declare
  short record;
begin
  perform lock_budgets(of_agent, of_space);
  -- A statement of its own: it sees what was committed while this one waited.
  select * into short from short_budget(of_agent, of_space, of_month, micros);
  if found then
    raise exception 'a budget does not cover turn %', for_turn using errcode = 'APL02', detail = json_build_object('scope', short.scope, 'cap', short.cap)::text;
  end if;
  insert into budget_reservations (tenant_id, turn_id, agent_id, space_id, reserved_micros)
    values (current_tenant(), for_turn, of_agent, of_space, micros) on conflict (tenant_id, turn_id) do nothing;
end $$;

-- Writes down what a turn has spent and used so far, all in all, and sets aside what its next model call may cost. No row: it may go on.
-- reason is money (the cap is met), price (spent is null: unknown) or tokens.
create function settle_turn(for_turn uuid, total bigint, next bigint, used bigint, of_month date)
  returns table (reason text, scope text, cap bigint) language plpgsql as $$
declare
  of_agent uuid;
  of_space uuid;
  held bigint;
  need bigint;
begin
  if not exists (select from budgets) then
    return;
  end if;
  select t.agent_id, h.space_id into of_agent, of_space
    from thread_turns t join threads h on h.tenant_id = t.tenant_id and h.uuid = t.thread_uuid where t.id = for_turn;
  if (select terms.capped from budget_terms(of_agent, of_space) terms) then
    if total is null then
      return query select 'price', b.scope::text, b.monthly_micros from budgets b
        where b.scope_id in (current_tenant(), of_space, of_agent) and b.monthly_micros is not null order by b.monthly_micros, b.scope_id limit 1;
      return;
    end if;
    -- A budget may be younger than the turn.
    insert into budget_reservations as r (tenant_id, turn_id, agent_id, space_id, reserved_micros, spent_micros)
      values (current_tenant(), for_turn, of_agent, of_space, total, total)
      on conflict (tenant_id, turn_id) do update set spent_micros = greatest(r.spent_micros, excluded.spent_micros)
      returning greatest(r.reserved_micros, r.spent_micros) into held;
    need := greatest(total + next - held, 0);
    if need > 0 then
      perform lock_budgets(of_agent, of_space);
    end if;
    return query select 'money', short.scope, short.cap from short_budget(of_agent, of_space, of_month, need) short;
    if found then
      return;
    end if;
    if need > 0 then
      update budget_reservations r set reserved_micros = held + need where r.turn_id = for_turn;
    end if;
  end if;
  return query select 'tokens', b.scope::text, b.tokens_per_turn from budgets b
    where b.scope_id in (current_tenant(), of_space, of_agent) and b.tokens_per_turn <= used order by b.tokens_per_turn, b.scope_id limit 1;
end $$;

-- Adds up what the tenant's turns have used, at most so many rows, and notes which parts of a cap that spent, and when. It returns how many
-- rows there were; none also while another one is at it.
create function meter_usage(most integer) returns integer language plpgsql as $$
declare
  ids bigint[];
begin
  if not pg_try_advisory_xact_lock(hashtextextended('usage of ' || current_tenant(), 0)) then
    return 0;
  end if;
  select array_agg(u.id) into ids from (select id from usage_unmetered where tenant_id = current_tenant() order by id limit most) u;
  if ids is null then
    return 0;
  end if;

  insert into budget_warnings (tenant_id, scope_id, month, monthly_micros, percent, scope, spent_micros, crossed_at)
    select distinct on (b.scope_id, s.month, p.percent) b.tenant_id, b.scope_id, s.month, b.monthly_micros, p.percent, b.scope, s.spent, s.ended_at
    from budgets b cross join unnest(array[50, 80, 100]) p (percent)
      cross join lateral (
        select u.id, u.ended_at, m.month, coalesce(before.cost_micros, 0) + sum(u.cost_micros) over (partition by m.month order by u.ended_at, u.id) as spent
        from usage_unmetered u cross join lateral (select date_trunc('month', u.day::timestamp)::date) m (month)
          left join usage_months before on before.tenant_id = b.tenant_id and before.scope_id = b.scope_id and before.month = m.month
        where u.tenant_id = b.tenant_id and u.id = any(ids) and b.scope_id in (u.tenant_id, u.space_id, u.agent_id)) s
    where b.monthly_micros is not null and s.spent > 0 and s.spent * 100 >= b.monthly_micros * p.percent
    order by b.scope_id, s.month, p.percent, s.ended_at, s.id
    on conflict do nothing;

  with metered as (
      delete from usage_unmetered u where u.tenant_id = current_tenant() and u.id = any(ids) returning *),
    days as (
      insert into usage_days as d (tenant_id, day, agent_id, space_id, model, turns, unpriced_turns, input_tokens, output_tokens, cache_read_tokens,
          cache_write_tokens, cost_micros)
        select tenant_id, day, agent_id, space_id, model, sum(turns), sum(unpriced_turns), sum(input_tokens), sum(output_tokens), sum(cache_read_tokens),
          sum(cache_write_tokens), sum(cost_micros)
        from metered group by tenant_id, day, agent_id, space_id, model
        on conflict (tenant_id, day, agent_id, space_id, model) do update set turns = d.turns + excluded.turns,
          unpriced_turns = d.unpriced_turns + excluded.unpriced_turns, input_tokens = d.input_tokens + excluded.input_tokens,
          output_tokens = d.output_tokens + excluded.output_tokens, cache_read_tokens = d.cache_read_tokens + excluded.cache_read_tokens,
          cache_write_tokens = d.cache_write_tokens + excluded.cache_write_tokens, cost_micros = d.cost_micros + excluded.cost_micros)
    insert into usage_months as m (tenant_id, scope_id, month, cost_micros)
      select u.tenant_id, s.scope_id, date_trunc('month', u.day::timestamp)::date, sum(u.cost_micros)
      from metered u cross join lateral (values (u.tenant_id), (u.space_id), (u.agent_id)) s (scope_id)
      group by 1, 2, 3
      on conflict (tenant_id, scope_id, month) do update set cost_micros = m.cost_micros + excluded.cost_micros;
  return cardinality(ids);
end $$;

-- ---- Whose is this?

grant select (tenant_id) on usage_unmetered to agentplatform_lookup;
grant select (tenant_id, turn_id) on budget_reservations to agentplatform_lookup;
grant select (finished_at) on thread_turns to agentplatform_lookup;
create policy lookup on usage_unmetered for select to agentplatform_lookup using (true);
create policy lookup on budget_reservations for select to agentplatform_lookup using (true);

reset role;
grant create on schema public to agentplatform_lookup;
set local role agentplatform_lookup;

create function lookup_unmetered_usage() returns table (tenant_id uuid)
  language sql stable security definer set search_path = public
  begin atomic
    select distinct u.tenant_id from usage_unmetered u;
  end;

-- What turns hold that are over. There is none unless somebody wrote to the tables past their triggers.
create function lookup_idle_reservations(most integer) returns table (tenant_id uuid, turn_id uuid)
  language sql stable security definer set search_path = public
  begin atomic
    select r.tenant_id, r.turn_id from budget_reservations r join thread_turns t on t.tenant_id = r.tenant_id and t.id = r.turn_id
    where t.finished_at is not null limit most;
  end;

revoke execute on function lookup_unmetered_usage(), lookup_idle_reservations(integer) from public;
grant execute on function lookup_unmetered_usage(), lookup_idle_reservations(integer) to agentplatform_app;

-- ---- What was used before there were these tables, tenant by tenant: the owner, too, sees only the rows of the transaction's tenant.

do $$
declare
  every uuid[];
  one uuid;
begin
  select array_agg(id) into every from tenants;
  set local role agentplatform_owner;
  foreach one in array coalesce(every, '{}') loop
    perform set_config('app.tenant_id', one::text, true);
    insert into usage_days (tenant_id, day, agent_id, space_id, model, turns, unpriced_turns, input_tokens, output_tokens, cache_read_tokens,
        cache_write_tokens, cost_micros)
      select t.tenant_id, (t.finished_at at time zone 'UTC')::date, t.agent_id, h.space_id, coalesce(t.model, ''), count(*),
        count(*) filter (where t.cost_micros is null), sum(t.input_tokens), sum(t.output_tokens), sum(t.cache_read_tokens), sum(t.cache_write_tokens),
        coalesce(sum(t.cost_micros), 0)
      from thread_turns t join threads h on h.tenant_id = t.tenant_id and h.uuid = t.thread_uuid
      where t.finished_at is not null group by 1, 2, 3, 4, 5;
    insert into usage_months (tenant_id, scope_id, month, cost_micros)
      select d.tenant_id, s.scope_id, date_trunc('month', d.day::timestamp)::date, sum(d.cost_micros)
      from usage_days d cross join lateral (values (d.tenant_id), (d.space_id), (d.agent_id)) s (scope_id) group by 1, 2, 3;
  end loop;
  perform set_config('app.tenant_id', '', true);
end $$;

reset role;
revoke create on schema public from agentplatform_lookup;
