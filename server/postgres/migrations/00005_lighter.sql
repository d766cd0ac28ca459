-- A step writes less: how a task stands is written beside its document, fewer
-- indexes are kept, and claimed rows are found where they were locked.

-- +goose Up

-- How a task stands, where a step changed nothing else of it: it counts instead
-- of what the document says, if it was written for the version of the row. A node
-- of the version before would go by the document alone: it has to be stopped first.
alter table tasks add column standing bytea;

-- Whoever reads a transition makes its id of its task and its number. The number
-- is the task's, whose row is fenced; that a run ends once holds by itself.
alter table transitions alter column id drop not null;
drop index transitions_of_a_task;
create unique index transitions_end_once on transitions (task_id, run) where to_state in ('SUCCEEDED', 'FAILED');

-- What ends a reservation is found by that, and is there once by that.
alter table entries drop constraint entries_pkey;
drop index entries_listed;
alter table entries add primary key (workspace, seq);
create unique index entries_begin_once on entries (id) where of_id = '';

-- The types of the rows change, and with them the function that takes them.
drop type memwrite_task, memwrite_step, memwrite_entry, memwrite_move, memwrite_transition cascade;

create type memwrite_task as (
  id text, workspace text, kind text, state text, version bigint, attempts integer, max_attempts integer, lease_owner text, lease_token text,
  due_at bigint, committed boolean, plan_hash bytea, has_input boolean, created_at bigint, doc bytea,
  identity bytea); -- that nobody holds yet; null: the task claims none

create type memwrite_step as (
  id text, state text, version bigint, attempts integer, max_attempts integer, lease_owner text, lease_token text,
  due_at bigint, committed boolean, plan_hash bytea, has_input boolean,
  doc bytea, standing bytea, -- one of the two
  old_state text, old_token text, old_version bigint, -- what the row must still be
  place tid); -- where it is, if it is locked; all of a batch or none

create type memwrite_entry as (
  id text, workspace text, unit text, period text, kind text, amount bigint, task_id text, run integer, of_id text, at bigint);

create type memwrite_move as (
  workspace text, unit text, period text, granted bigint, available bigint, reserved bigint, spent bigint);

create type memwrite_transition as (
  workspace text, rank bigint, task_id text, number integer, run integer, attempt integer,
  from_state text, to_state text, class text, code text, at bigint);

-- What is longest comes last: whoever puts it all together copies least then.
-- +goose StatementBegin
create function memwrite_write(dropped bytea[], droppers text[], shown text[], spaces text[], counts bigint[],
  moves memwrite_move[], history memwrite_transition[], added memwrite_entry[], steps memwrite_step[], created memwrite_task[])
returns void language plpgsql
-- A plan is kept while the tables grow from nothing: it goes by the keys from the start.
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set lock_timeout = '5s' as $$
declare
  met bigint;
  before bigint;
  move memwrite_move;
begin
  if current_setting('synchronous_commit') = 'off' then
    perform set_config('synchronous_commit', 'on', true);
  end if;
  if cardinality(created) > 0 then
    -- One that is held ends the transaction.
    insert into identities (hash, task_id) select u.identity, u.id from unnest(created) u where u.identity is not null order by u.identity;
    insert into tasks (id, workspace, kind, state, version, attempts, max_attempts, lease_owner, lease_token, due_at,
      committed, plan_hash, has_input, created_at, doc)
      select u.id, u.workspace, u.kind, u.state, u.version, u.attempts, u.max_attempts, u.lease_owner, u.lease_token, u.due_at,
      u.committed, u.plan_hash, u.has_input, u.created_at, u.doc from unnest(created) u;
  end if;
  if cardinality(steps) > 0 then
    if steps[1].place is null then
      update tasks t set state = u.state, version = u.version, attempts = u.attempts, max_attempts = u.max_attempts, lease_owner = u.lease_owner,
        lease_token = u.lease_token, due_at = u.due_at, committed = u.committed, plan_hash = u.plan_hash, has_input = u.has_input, doc = coalesce(u.doc, t.doc), standing = u.standing
        from unnest(steps) u
        where t.id = u.id and t.state = u.old_state and t.lease_token = u.old_token and t.version = u.old_version;
    else
      update tasks t set state = u.state, version = u.version, attempts = u.attempts, max_attempts = u.max_attempts, lease_owner = u.lease_owner,
        lease_token = u.lease_token, due_at = u.due_at, committed = u.committed, plan_hash = u.plan_hash, has_input = u.has_input, doc = coalesce(u.doc, t.doc), standing = u.standing
        from unnest(steps) u
        where t.ctid = u.place and t.id = u.id and t.state = u.old_state and t.lease_token = u.old_token and t.version = u.old_version;
    end if;
    get diagnostics met = row_count;
    if met <> cardinality(steps) then
      perform memwrite_require(false);
    end if;
  end if;
  if cardinality(dropped) > 0 then
    delete from identities i using unnest(dropped, droppers) as u(hash, task) where i.hash = u.hash and i.task_id = u.task;
  end if;
  if cardinality(shown) > 0 then
    update records set projected = true where id = any(shown) and not forgotten;
  end if;
  if cardinality(added) > 0 then
    insert into entries (id, workspace, unit, period, kind, amount, task_id, run, of_id, at)
      select u.id, u.workspace, u.unit, u.period, u.kind, u.amount, u.task_id, u.run, u.of_id, u.at from unnest(added) u;
  end if;
  if cardinality(moves) = 1 then
    move := moves[1];
    update balances b set opened = true, granted = b.granted + move.granted, available = b.available + move.available,
      reserved = b.reserved + move.reserved, spent = b.spent + move.spent
      where b.workspace = move.workspace and b.unit = move.unit and b.period = move.period;
    if not found then
      perform memwrite_require(false);
    end if;
  elsif cardinality(moves) > 1 then
    update balances b set opened = true, granted = b.granted + u.granted, available = b.available + u.available,
      reserved = b.reserved + u.reserved, spent = b.spent + u.spent
      from unnest(moves) u where b.workspace = u.workspace and b.unit = u.unit and b.period = u.period;
    get diagnostics met = row_count;
    if met <> cardinality(moves) then
      perform memwrite_require(false);
    end if;
  end if;
  if cardinality(spaces) = 1 then
    update histories h set position = h.position + counts[1] where h.workspace = spaces[1] returning h.position - counts[1] into before;
    if not found then
      perform memwrite_require(false);
    end if;
    insert into transitions (workspace, position, task_id, number, run, attempt, from_state, to_state, class, code, at)
      select u.workspace, before + u.rank, u.task_id, u.number, u.run, u.attempt, u.from_state, u.to_state, u.class, u.code, u.at
      from unnest(history) u;
  elsif cardinality(spaces) > 1 then
    with counted as (
      update histories h set position = h.position + c.n from unnest(spaces, counts) as c(workspace, n)
      where h.workspace = c.workspace returning h.workspace, h.position - c.n as before)
    insert into transitions (workspace, position, task_id, number, run, attempt, from_state, to_state, class, code, at)
      select u.workspace, c.before + u.rank, u.task_id, u.number, u.run, u.attempt, u.from_state, u.to_state, u.class, u.code, u.at
      from unnest(history) u join counted c on c.workspace = u.workspace;
    get diagnostics met = row_count;
    if met <> cardinality(history) then
      perform memwrite_require(false);
    end if;
  end if;
end
$$;
-- +goose StatementEnd

-- The check is an expression, which costs less than a function. The function
-- is called for a row that does not pass, to say what is wrong with it.
-- +goose StatementBegin
create function memwrite_unsound(state text, lease_token text, due_at bigint, attempts integer, max_attempts integer, committed boolean,
  has_plan boolean, has_input boolean)
returns boolean language plpgsql immutable as $$
declare
  broken text;
begin
  broken := case
    when state not in ('PENDING', 'RUNNING', 'RETRYING', 'SUCCEEDED', 'FAILED') then 'state_is_known'
    when (state = 'RUNNING') <> (lease_token <> '') then 'running_has_a_lease'
    when state in ('PENDING', 'RUNNING', 'RETRYING') and due_at is null then 'live_is_due'
    when attempts > max_attempts then 'attempts_are_bounded'
    when committed and not has_plan then 'committed_has_a_plan'
    when (state = 'SUCCEEDED' and not committed) or (state = 'FAILED' and committed) then 'succeeded_is_committed'
    else 'succeeded_has_no_input' end;
  raise exception 'memwrite: % does not hold', broken using errcode = 'check_violation', constraint = broken, table = 'tasks';
end
$$;
-- +goose StatementEnd

alter table tasks drop constraint task_is_sound,
  add constraint task_is_sound check ((case state
    when 'PENDING' then lease_token = '' and due_at is not null and has_input
    when 'RUNNING' then lease_token <> '' and due_at is not null and has_input
    when 'RETRYING' then lease_token = '' and due_at is not null and has_input
    when 'SUCCEEDED' then lease_token = '' and committed and not has_input
    when 'FAILED' then lease_token = '' and not committed
    else false end and attempts <= max_attempts and (not committed or plan_hash is not null))
    or memwrite_unsound(state, lease_token, due_at, attempts, max_attempts, committed, plan_hash is not null, has_input));
drop function memwrite_sound;

-- +goose Down
-- There is no way back: how a task stands is not in its document any more.
select memwrite_require(false);
