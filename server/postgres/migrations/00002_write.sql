-- One statement for a whole batch, whose plans a session keeps: to parse and plan
-- each of its parts anew would cost more than to run it. Parameters are columns:
-- claimed ($1 to $2), created ($3 to $17), updated ($18 to $35), dropped ($36 to $37), shown ($38 to $38), entries ($39 to $48), balances ($49 to $55), history ($56 to $69).

-- +goose Up
-- +goose StatementBegin
create function memwrite_write(
  bytea[], text[], text[], text[], text[], text[], bigint[], int[], int[], text[], text[], bigint[], boolean[],
  bytea[], boolean[], bigint[], bytea[], text[], text[], text[], text[], bigint[], int[], int[], text[],
  text[], bigint[], boolean[], bytea[], boolean[], bigint[], bytea[], text[], text[], bigint[], bytea[],
  text[], text[], text[], text[], text[], text[], text[], bigint[], text[], int[], text[], bigint[], text[],
  text[], text[], bigint[], bigint[], bigint[], bigint[], text[], bigint[], text[], bigint[], text[], text[],
  int[], int[], int[], text[], text[], text[], text[], bigint[])
returns void language plpgsql
-- A plan is kept while the tables grow from nothing: it goes by the keys from the start.
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  met bigint;
begin
  perform set_config('lock_timeout', '5s', true);
  if current_setting('synchronous_commit') = 'off' then
    perform set_config('synchronous_commit', 'on', true);
  end if;
  if cardinality($1) > 0 then
    insert into identities (hash, task_id) select * from unnest($1, $2) as u(hash, task) order by u.hash on conflict (hash) do nothing;
    get diagnostics met = row_count;
    perform memwrite_require(met = cardinality($1));
  end if;
  if cardinality($3) > 0 then
    insert into tasks (id, workspace, kind, state, version, attempts, max_attempts, lease_owner, lease_token, due_at,
      committed, plan_hash, has_input, created_at, doc)
      select * from unnest($3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17);
  end if;
  if cardinality($18) > 0 then
    update tasks t set state = u.state, version = u.version, attempts = u.attempts, max_attempts = u.most, lease_owner = u.owner,
      lease_token = u.token, due_at = u.due, committed = u.committed, plan_hash = u.plan, has_input = u.input, doc = u.doc
      from unnest($18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35)
      as u(id, workspace, kind, state, version, attempts, most, owner, token, due, committed, plan, input, created, doc, old_state, old_token, old_version)
      where t.id = u.id and t.state = u.old_state and t.lease_token = u.old_token and t.version = u.old_version;
    get diagnostics met = row_count;
    perform memwrite_require(met = cardinality($18));
  end if;
  if cardinality($36) > 0 then
    delete from identities i using unnest($36, $37) as u(hash, task) where i.hash = u.hash and i.task_id = u.task;
  end if;
  if cardinality($38) > 0 then
    update records set projected = true where id = any($38) and not forgotten;
  end if;
  if cardinality($39) > 0 then
    insert into entries (id, workspace, unit, period, kind, amount, task_id, run, of_id, at)
      select * from unnest($39, $40, $41, $42, $43, $44, $45, $46, $47, $48);
  end if;
  if cardinality($49) > 0 then
    update balances b set opened = true, granted = b.granted + u.granted, available = b.available + u.available,
      reserved = b.reserved + u.reserved, spent = b.spent + u.spent
      from unnest($49, $50, $51, $52, $53, $54, $55) as u(workspace, unit, period, granted, available, reserved, spent)
      where b.workspace = u.workspace and b.unit = u.unit and b.period = u.period;
    get diagnostics met = row_count;
    perform memwrite_require(met = cardinality($49));
  end if;
  if cardinality($56) > 0 then
    with counted as (
      update histories h set position = h.position + c.n from unnest($56, $57) as c(workspace, n)
      where h.workspace = c.workspace returning h.workspace, h.position - c.n as before)
    insert into transitions (workspace, position, id, task_id, number, run, attempt, from_state, to_state, class, code, at)
      select t.workspace, c.before + t.rank, t.id, t.task_id, t.number, t.run, t.attempt, t.from_state, t.to_state, t.class, t.code, t.at
      from unnest($58, $59, $60, $61, $62, $63, $64, $65, $66, $67, $68, $69)
      as t(workspace, rank, id, task_id, number, run, attempt, from_state, to_state, class, code, at)
      join counted c on c.workspace = t.workspace;
    get diagnostics met = row_count;
    perform memwrite_require(met = cardinality($58));
  end if;
end
$$;
-- +goose StatementEnd

-- +goose Down
drop function memwrite_write;
