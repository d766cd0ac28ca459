-- Times are nanoseconds since 1970 and 0 for never, so that none is rounded.
-- What a caller may have written is bytea: a text cannot hold every JSON string.
-- What is looked up by it is the first half of its SHA-256, empty for nothing.

-- +goose Up

-- A statement that met other rows than were judged ends its transaction here,
-- in the server: what follows it, the commit too, is on its way already.
-- +goose StatementBegin
create function memwrite_require(met boolean) returns boolean language plpgsql as $$
begin
  if met is not true then
    raise exception 'memwrite: the rows are not the ones that were judged' using errcode = 'MW001';
  end if;
  return true;
end
$$;
-- +goose StatementEnd

create table workspaces (
  id   text collate "C" primary key,
  doc  bytea not null
);

-- The place of a workspace's latest transition. Its row lock gives positions in
-- the order of commits, which a sequence does not.
create table histories (
  workspace text collate "C" primary key,
  position  bigint not null
) with (fillfactor = 20);

-- The document has the whole task. The columns are what SQL judges by, and what
-- no program may break.
create table tasks (
  id           text collate "C" primary key,
  workspace    text collate "C" not null,
  kind         text collate "C" not null,
  state        text collate "C" not null,
  version      bigint not null,
  attempts     integer not null,
  max_attempts integer not null,
  lease_owner  text not null,
  lease_token  text not null,
  due_at       bigint,
  committed    boolean not null,
  plan_hash    bytea,
  has_input    boolean not null,
  created_at   bigint not null,
  doc          bytea not null,
  constraint state_is_known check (state in ('PENDING', 'RUNNING', 'RETRYING', 'SUCCEEDED', 'FAILED')),
  constraint running_has_a_lease check ((state = 'RUNNING') = (lease_token <> '')),
  constraint live_is_due check (state not in ('PENDING', 'RUNNING', 'RETRYING') or due_at is not null),
  constraint attempts_are_bounded check (attempts <= max_attempts),
  constraint committed_has_a_plan check (not committed or plan_hash is not null),
  constraint succeeded_is_committed check (case state when 'SUCCEEDED' then committed when 'FAILED' then not committed else true end),
  constraint succeeded_has_no_input check (case state when 'SUCCEEDED' then not has_input when 'FAILED' then true else has_input end)
) with (fillfactor = 80);
create index tasks_due on tasks (due_at, id) where due_at is not null;
create index tasks_listed on tasks (workspace, kind, state, created_at, id);

create table identities (
  hash    bytea primary key,
  task_id text collate "C" not null
);

create table transitions (
  workspace  text collate "C" not null,
  position   bigint not null,
  id         text not null,
  task_id    text collate "C" not null,
  number     integer not null,
  run        integer not null,
  attempt    integer not null,
  from_state text not null,
  to_state   text not null,
  class      text not null,
  code       text not null,
  at         bigint not null,
  primary key (workspace, position)
);
create unique index transitions_of_a_task on transitions (task_id, number);

create table balances (
  workspace text collate "C" not null,
  unit      text collate "C" not null,
  period    text collate "C" not null,
  opened    boolean not null,
  granted   bigint not null,
  available bigint not null,
  reserved  bigint not null,
  spent     bigint not null,
  primary key (workspace, unit, period),
  constraint no_side_is_negative check (available >= 0 and reserved >= 0 and spent >= 0),
  constraint sides_add_up check (granted = available + reserved + spent)
) with (fillfactor = 20);

create table entries (
  id        text collate "C" primary key,
  seq       bigint generated always as identity,
  workspace text collate "C" not null,
  unit      text not null,
  period    text not null,
  kind      text not null,
  amount    bigint not null,
  task_id   text not null,
  run       integer not null,
  of_id     text collate "C" not null,
  at        bigint not null
);
create index entries_listed on entries (workspace, seq);
create unique index entries_end_once on entries (of_id) where of_id <> '';

create sequence record_numbers;

create table records (
  workspace  text collate "C" not null,
  id         text collate "C" primary key,
  seq        bigint generated always as identity,
  number     bigint not null,
  wire       text not null,
  task_id    text not null,
  tenant     bytea not null,
  project    bytea not null,
  end_user   bytea not null,
  user_id    bytea not null,
  agent_id   bytea not null,
  run_id     bytea not null,
  type       bytea not null,
  key        bytea not null,
  created_at bigint not null,
  expires_at bigint not null,
  projected  boolean not null,
  forgotten  boolean not null,
  doc        bytea not null
) with (fillfactor = 80);
create unique index records_numbered on records (number) where number <> 0;
create index records_of_an_end_user on records (workspace, end_user, created_at, id) where wire = 'memorysync' and not forgotten;
create index records_of_a_user on records (workspace, user_id, created_at, id) where wire = 'fishmem' and user_id <> '' and not forgotten;
create index records_of_an_agent on records (workspace, agent_id, created_at, id) where wire = 'fishmem' and agent_id <> '' and not forgotten;
create index records_of_a_run on records (workspace, run_id, created_at, id) where wire = 'fishmem' and run_id <> '' and not forgotten;
create index records_of_a_topic on records (workspace, end_user, type, key, seq) where wire = 'memorysync' and not forgotten;

-- +goose Down
drop table records, entries, balances, transitions, identities, tasks, histories, workspaces;
drop sequence record_numbers;
drop function memwrite_require;
