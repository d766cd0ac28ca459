-- What follows the records reads them by the transaction that changed them last:
-- every one that ends later has a number at or behind the oldest that is under
-- way. Null is a time before anybody could follow. The index on it is made by
-- the first that does.

-- +goose Up
alter table records add column changed xid8;
alter table records alter column changed set default pg_current_xact_id();

-- +goose StatementBegin
create function memwrite_changed() returns trigger language plpgsql as $$
begin
  new.changed := pg_current_xact_id();
  return new;
end
$$;
-- +goose StatementEnd
create trigger changed before update of doc on records for each row execute function memwrite_changed();

-- How often whatever is derived from the records was asked to be made anew.
create table rebuilds (
  generation bigint not null
);
insert into rebuilds (generation) values (0);

-- +goose Down
drop table rebuilds;
drop trigger changed on records;
drop function memwrite_changed;
alter table records drop column changed;
