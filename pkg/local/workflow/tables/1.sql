-- What tokens are signed with: one row, which Open makes.
create table local_workflow.secret (key bytea not null);

create table local_workflow.definitions (
	id      bigint generated always as identity primary key,
	text    text not null,    -- as it was put
	timeout integer not null  -- TimeoutSeconds; 0: none
);

create table local_workflow.machines (
	name       text collate "C" primary key,
	definition bigint not null,                -- of runs that are started
	deleted    boolean not null default false  -- its runs end at their next state, and none starts
);

create table local_workflow.runs (
	id         bigint generated always as identity primary key,
	machine    text collate "C" not null,
	name       text collate "C" not null,
	definition bigint not null,                 -- that it began with
	status     text not null default 'RUNNING',
	input      text not null,
	output     text,
	error      text not null default '',
	cause      text not null default '',
	started    timestamptz not null,
	ended      timestamptz,
	until      timestamptz,                     -- when it times out; null: never, or it is over
	steps      integer not null default 0,      -- how many it has made
	bytes      bigint not null default 0,       -- of data in them, and that branches began with
	tell       timestamptz,                     -- when to tell of its end; null: it is not over, or has been told
	told       integer not null default 0,      -- how often that was tried
	unique (machine, name)
) with (fillfactor = 80);
create index runs_until on local_workflow.runs (until) where until is not null;
create index runs_ended on local_workflow.runs (ended) where ended is not null;
create index runs_tell on local_workflow.runs (tell) where tell is not null;
create index runs_definition on local_workflow.runs (definition);

create table local_workflow.steps (
	run   bigint not null,
	seq   integer not null,
	visit integer not null,
	at    timestamptz not null,
	kind  text not null,
	state text not null,
	type  text not null,
	data  text,             -- input of what was entered, output of what was exited
	error text not null,
	cause text not null,
	primary key (run, seq)
);

create table local_workflow.branches (
	run      bigint not null,
	id       bigint generated always as identity,
	parent   bigint,                      -- the branch that waits for this one's end; null: it is the run's own
	place    integer not null default 0,  -- among its parent's
	claim    bigint not null default 0,   -- counts who has had it: who has an older one has none
	holder   integer,                     -- the Run that works on it; null: none
	wake     timestamptz,                 -- when to look at it, if nobody works on it; null: when something comes
	phase    text not null,               -- what it is at: see phase in advance.go
	state    text not null,               -- '': the definition's first
	input    text not null,               -- the state's raw input; of a branch that is over, its output
	visit    integer not null default 0,  -- the step that entered the state
	entered  timestamptz,
	retries  integer[] not null default '{}', -- attempts that each retrier of the state has given
	attempt  integer not null default 0,  -- counts attempts at the branch's tasks: each has a token of its own
	deadline timestamptz,                 -- of the task
	beat     timestamptz,                 -- when its next heartbeat is due
	pulse    interval,                    -- HeartbeatSeconds
	item     text,                        -- of a Map that it is in: [index, value]
	answer   text,                        -- to the token
	error    text,                        -- that it was answered with, or that a branch of it failed with; null: it was not
	cause    text,
	total    integer not null default 0,  -- branches of it
	made     integer not null default 0,  -- those that have begun
	ended    integer not null default 0,  -- those that are over
	size     bigint not null default 0,   -- bytes of their outputs
	primary key (run, id)
);
create index branches_wake on local_workflow.branches (wake) where holder is null and wake is not null;

create sequence local_workflow.holders as integer cycle;

-- cut takes all branches of a branch away, and theirs.
create function local_workflow.cut(_run bigint, _id bigint) returns void language sql as $$
	with recursive below as (
		select id from local_workflow.branches where run = _run and parent = _id
		union all select b.id from local_workflow.branches b join below on b.parent = below.id where b.run = _run)
	delete from local_workflow.branches where run = _run and id in (select id from below)
$$;

-- finish ends a run that is not over.
create function local_workflow.finish(_run bigint, _now timestamptz, _tell boolean, _status text, _output text, _error text, _cause text) returns boolean
language plpgsql as $$
begin
	update local_workflow.runs set status = _status, output = _output, error = _error, cause = _cause, ended = greatest(_now, started), until = null,
		tell = case when _tell then _now end where id = _run and status = 'RUNNING';
	if not found then
		return false;
	end if;
	delete from local_workflow.branches where run = _run;
	return true;
end $$;

-- settle writes a transition: the steps that were made, and where the branch is then. Whoever writes to a run has its row: the rest of it stands still.
-- A visit below zero is that of a step of the same transition: -1 the first. The outcome is
--   lost   the branch is no longer the caller's, or the run is over: nothing was written
--   ended  this ended the run
--   held   the branch next is the caller's, by the claim; the steps before the transition's are base
--   left   nothing is the caller's any more
create function local_workflow.settle(
	_run bigint, _id bigint, _claim bigint, _holder integer, _now timestamptz, _tell boolean, _most integer, _room bigint, _largest bigint,
	kinds text[], states text[], types text[], visits integer[], data text[], errors text[], causes text[],
	_phase text, _state text, _input text, _visit integer, _entered timestamptz, _retries integer[], _attempt integer,
	_deadline timestamptz, _beat timestamptz, _pulse interval, _wake timestamptz, _stays boolean, _error text, _cause text,
	_total integer, starts text[], inputs text[], items text[],
	out outcome text, out base integer, out next bigint, out next_claim bigint
) language plpgsql as $$
declare
	gone boolean;
	late boolean;
	above bigint;
	was text;
	kept bigint;
begin
	select r.steps, r.bytes, m.deleted, coalesce(r.until <= _now, false) into base, kept, gone, late from local_workflow.runs r left join local_workflow.machines m on m.name = r.machine
		where r.id = _run and r.status = 'RUNNING' for update of r;
	if found then
		select parent, phase into above, was from local_workflow.branches where run = _run and id = _id and claim = _claim for update;
	end if;
	if not found then
		outcome := 'lost';
		return;
	end if;
	outcome := 'ended';
	kept := kept + (select coalesce(sum(octet_length(text)), 0) from unnest(data || inputs) text);
	if late then
		perform local_workflow.finish(_run, _now, _tell, 'TIMED_OUT', null, '', '');
		return;
	elsif gone and 'entered' = any(kinds) then
		perform local_workflow.finish(_run, _now, _tell, 'ABORTED', null, '', 'the machine was deleted');
		return;
	elsif base + cardinality(kinds) > _most then
		perform local_workflow.finish(_run, _now, _tell, 'FAILED', null, 'States.Runtime', 'the run has made as many steps as a run may: ' || _most);
		return;
	elsif kept > _room then
		perform local_workflow.finish(_run, _now, _tell, 'FAILED', null, 'States.Runtime', 'the steps of the run have more data than a run may have, in bytes: ' || _room);
		return;
	end if;
	insert into local_workflow.steps
		select _run, base + n, case when s.visit < 0 then base - s.visit else s.visit end, _now, s.kind, s.state, s.type, s.data, s.error, s.cause
		from unnest(kinds, states, types, visits, data, errors, causes) with ordinality s (kind, state, type, visit, data, error, cause, n);
	update local_workflow.runs set steps = base + cardinality(kinds), bytes = kept where id = _run;

	if above is null and _phase in ('over', 'failed') then -- whose commit waits for the disk
		perform local_workflow.finish(_run, _now, _tell, case _phase when 'over' then 'SUCCEEDED' else 'FAILED' end,
			case _phase when 'over' then _input end, coalesce(_error, ''), coalesce(_cause, ''));
		return;
	end if;
	perform set_config('synchronous_commit', 'off', true);
	if was = 'children' and (_phase <> 'children' or _total is not null) then -- or another state has parted since
		perform local_workflow.cut(_run, _id);
	end if;
	if _phase = 'failed' then
		perform local_workflow.cut(_run, above);
		update local_workflow.branches set error = _error, cause = _cause, holder = _holder, claim = claim + 1, wake = null
			where run = _run and id = above returning id, claim into next, next_claim;
		outcome := 'held';
		return;
	end if;
	update local_workflow.branches set claim = _claim + 1, holder = case when _stays then _holder end, wake = _wake, phase = _phase, state = _state,
		input = coalesce(_input, input), visit = case when _visit < 0 then base - _visit else _visit end, entered = _entered, retries = _retries, attempt = _attempt,
		deadline = _deadline, beat = _beat, pulse = _pulse, answer = null, error = null, cause = null,
		total = coalesce(_total, total), made = case when _total is null then made else 0 end + coalesce(cardinality(starts), 0),
		ended = case when _total is null then ended else 0 end, size = case when _total is null then size else 0 end
		where run = _run and id = _id;
	if _phase = 'over' then
		update local_workflow.branches set ended = ended + 1, size = size + octet_length(_input) where run = _run and id = above;
		update local_workflow.branches set holder = _holder, claim = claim + 1, wake = null
			where run = _run and id = above and (ended = total or made < total or size > _largest) returning id, claim into next, next_claim;
	elsif cardinality(starts) > 0 then
		with made as (
			insert into local_workflow.branches (run, parent, place, claim, holder, wake, phase, state, input, item)
			select _run, _id, b.made - cardinality(starts) + n - 1, 1, case n when 1 then _holder end, case when n > 1 then _now end, 'enter', c.state, c.input, c.item
			from local_workflow.branches b, unnest(starts, inputs, items) with ordinality c (state, input, item, n) where b.run = _run and b.id = _id
			returning id, place)
		select id, 1 into next, next_claim from made order by place limit 1;
	elsif _stays then
		next := _id;
		next_claim := _claim + 1;
	end if;
	outcome := case when next is null then 'left' else 'held' end;
end $$;

-- start makes a run, unless there is one of that name; made is false then, and its input is to be compared. No row: there is no such machine.
create function local_workflow.start(_machine text, _name text, _input text, _now timestamptz, _notify boolean, out made boolean, out had text)
language plpgsql as $$
declare
	of record;
	run bigint;
begin
	select d.id, d.timeout into of from local_workflow.machines m join local_workflow.definitions d on d.id = m.definition where m.name = _machine and not m.deleted
		for share of m; -- Deploy and Delete wait: none is started of what they took away
	if not found then
		return;
	end if;
	insert into local_workflow.runs (machine, name, definition, input, started, until)
		values (_machine, _name, of.id, _input, _now, case when of.timeout > 0 then _now + of.timeout * interval '1 second' end)
		on conflict do nothing returning id into run;
	made := run is not null;
	if not made then
		select input into had from local_workflow.runs where machine = _machine and name = _name;
		return;
	end if;
	insert into local_workflow.branches (run, phase, state, input, wake) values (run, 'enter', '', _input, _now);
	if _notify then
		perform pg_notify('local_workflow', '');
	end if;
end $$;

-- answer ends the task that waits with a token, whoever works on it. False: it is over.
create function local_workflow.answer(_run bigint, _id bigint, _attempt integer, _now timestamptz, _answer text, _error text, _cause text, _notify boolean) returns boolean
language plpgsql as $$
begin
	update local_workflow.branches set answer = _answer, error = _error, cause = _cause, claim = claim + 1, holder = null, wake = _now
		where run = _run and id = _id and attempt = _attempt and phase in ('call', 'token') and answer is null and error is null
		and (deadline is null or deadline > _now) and (beat is null or beat > _now or phase = 'call');
	if found and _notify then
		perform pg_notify('local_workflow', '');
	end if;
	return found;
end $$;

-- heartbeat puts off when the task's next one is due. False: it is over.
create function local_workflow.heartbeat(_run bigint, _id bigint, _attempt integer, _now timestamptz) returns boolean language plpgsql as $$
begin
	update local_workflow.branches set beat = _now + pulse, wake = case when holder is null then least(deadline, _now + pulse) end
		where run = _run and id = _id and attempt = _attempt and phase in ('call', 'token') and answer is null and error is null
		and (deadline is null or deadline > _now) and (beat is null or beat > _now or phase = 'call');
	return found;
end $$;

-- await lets go of a task whose function has handed out the token. False: it was answered, or is over.
create function local_workflow.await(_run bigint, _id bigint, _claim bigint) returns boolean language plpgsql as $$
begin
	perform set_config('synchronous_commit', 'off', true);
	update local_workflow.branches set phase = 'token', holder = null, wake = least(deadline, beat), claim = claim + 1 where run = _run and id = _id and claim = _claim;
	return found;
end $$;

-- free_dead lets go of branches whose holder's connection is gone. The holder's number is an advisory lock of that connection.
create function local_workflow.free_dead(_holder integer, _space integer, _now timestamptz) returns bigint language sql as $$
	with freed as (
		update local_workflow.branches b set holder = null, wake = _now, claim = claim + 1
		where holder <> _holder and not exists (
			select from pg_locks l where l.locktype = 'advisory' and l.classid = _space::oid and l.objid = b.holder::oid and l.objsubid = 2 and l.granted
			and l.database = (select oid from pg_database where datname = current_database()))
		returning 1)
	select count(*) from freed
$$;
