-- How long what the sweeps do has been left waiting.

grant create on schema public to agentplatform_lookup;
set local role agentplatform_lookup;

-- For how long the oldest has been due, over all tenants; what is to be tried later is not due. One look into the index: now() can be looked for there,
-- clock_timestamp() would be compared with each row that waits.
create function lookup_late_replies() returns interval
  language sql stable security definer set search_path = public
  begin atomic
    select coalesce((select now() - r.next_at from integration_replies r where r.next_at < now() order by r.next_at limit 1), interval '0');
  end;

create function lookup_late_task_events() returns interval
  language sql stable security definer set search_path = public
  begin atomic
    select coalesce((select now() - e.next_at from task_events e where e.next_at < now() order by e.next_at limit 1), interval '0');
  end;

-- The same for what is to be done: with clock_timestamp() each row that waits was looked at, each minute.
create or replace function lookup_integration_replies(most integer) returns table (tenant_id uuid, reply_id uuid)
  language sql stable security definer set search_path = public
  begin atomic
    select r.tenant_id, r.id from integration_replies r where r.next_at < now() order by r.next_at limit most;
  end;

create or replace function lookup_task_events(most integer) returns table (tenant_id uuid, event_id uuid)
  language sql stable security definer set search_path = public
  begin atomic
    select e.tenant_id, e.id from task_events e where e.next_at < now() order by e.next_at limit most;
  end;

revoke execute on function lookup_late_replies(), lookup_late_task_events() from public;
grant execute on function lookup_late_replies(), lookup_late_task_events() to agentplatform_app;

reset role;
revoke create on schema public from agentplatform_lookup;
