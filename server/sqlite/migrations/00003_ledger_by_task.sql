-- +goose Up

-- The ledger is kept by what its entries belong to: a run of a task reserves once
-- and its reservation ends once, which is the key itself, and needs no index
-- beside it. What a row belongs to is written by the same transaction, or looked
-- at in it, so nothing is looked for a second time by a foreign key.
CREATE TABLE entry_3 (
    workspace TEXT    NOT NULL,
    task      INTEGER NOT NULL, -- task.seq; 0: a grant
    run       INTEGER NOT NULL, -- of a grant: its seq
    part      INTEGER NOT NULL CHECK (part = 0 OR part = 1), -- 1: the end of a reservation
    seq       INTEGER NOT NULL, -- given once, in the order in which entries are posted
    id        TEXT    NOT NULL,
    unit      TEXT    NOT NULL,
    period    TEXT    NOT NULL,
    kind      TEXT    NOT NULL CHECK (kind = 'reserve' OR kind = 'settle' OR kind = 'release' OR kind = 'grant'),
    amount    INTEGER NOT NULL CHECK (kind = 'grant' OR amount > 0),
    at        TEXT    NOT NULL,
    PRIMARY KEY (workspace, task, run, part),
    CHECK ((kind = 'settle' OR kind = 'release') = (part = 1)),
    CHECK ((kind = 'grant') = (task = 0))
) STRICT, WITHOUT ROWID;

INSERT INTO entry_3 (workspace, task, run, part, seq, id, unit, period, kind, amount, at)
SELECT workspace, coalesce(task, 0), CASE WHEN task IS NULL THEN seq ELSE run END, ends IS NOT NULL, seq, id, unit, period, kind, amount, at
FROM entry ORDER BY 1, 2, 3, 4;
DROP TABLE entry;
ALTER TABLE entry_3 RENAME TO entry;
CREATE UNIQUE INDEX entry_grant ON entry (id) WHERE kind = 'grant';

-- posted is the seq that was given last when the account was moved.
ALTER TABLE balance ADD COLUMN posted INTEGER NOT NULL DEFAULT 0;
UPDATE balance SET posted = (SELECT coalesce(max(seq), 0) FROM entry);

-- The number of a transition is part of the task it was written with, under the
-- version of that; its id is made of both.
CREATE TABLE transition_3 (
    workspace TEXT    NOT NULL,
    position  INTEGER NOT NULL, -- given once
    task      INTEGER NOT NULL, -- task.seq
    number    INTEGER NOT NULL,
    run       INTEGER NOT NULL,
    attempt   INTEGER NOT NULL,
    was       TEXT    NOT NULL,
    state     TEXT    NOT NULL,
    class     TEXT    NOT NULL,
    code      TEXT    NOT NULL,
    at        TEXT    NOT NULL,
    PRIMARY KEY (workspace, position)
) STRICT, WITHOUT ROWID;

INSERT INTO transition_3 (workspace, position, task, number, run, attempt, was, state, class, code, at)
SELECT workspace, position, task, number, run, attempt, was, state, class, code, at FROM transition ORDER BY workspace, position;
DROP TABLE transition;
ALTER TABLE transition_3 RENAME TO transition;
