-- +goose Up

-- What an accept and a finish insert into, with fewer trees to a table: a history
-- and a ledger are kept in the order of their workspace, which needs no index
-- beside it. A list of three values or more that is checked by IN is a table that
-- SQLite fills anew at every statement; it is spelled out instead.
CREATE TABLE task_2 (
    seq         INTEGER PRIMARY KEY,
    id          TEXT    NOT NULL UNIQUE,
    workspace   TEXT    NOT NULL REFERENCES workspace (id),
    kind        TEXT    NOT NULL,
    state       TEXT    NOT NULL CHECK (state = 'PENDING' OR state = 'RUNNING' OR state = 'SUCCEEDED' OR state = 'RETRYING' OR state = 'FAILED'),
    version     INTEGER NOT NULL CHECK (version > 0),
    token       TEXT    NOT NULL,
    due         INTEGER, -- nanoseconds since 1970; NULL is never
    created     INTEGER NOT NULL,
    doc         TEXT    NOT NULL,
    CHECK ((state = 'RUNNING') = (token <> '')),
    CHECK (due IS NOT NULL OR state = 'SUCCEEDED' OR state = 'FAILED')
) STRICT;

INSERT INTO task_2 (seq, id, workspace, kind, state, version, token, due, created, doc)
SELECT seq, id, workspace, kind, state, version, token, due, created, doc FROM task ORDER BY seq;
DROP TABLE task;
ALTER TABLE task_2 RENAME TO task;
CREATE INDEX task_due ON task (due, id) WHERE due IS NOT NULL;
CREATE INDEX task_list ON task (workspace, kind, state, created, id);

-- Rows are only ever added, and the writer gives each position once.
CREATE TABLE transition_2 (
    workspace TEXT    NOT NULL,
    position  INTEGER NOT NULL,
    task      INTEGER NOT NULL REFERENCES task (seq),
    number    INTEGER NOT NULL,
    id        TEXT    NOT NULL,
    run       INTEGER NOT NULL,
    attempt   INTEGER NOT NULL,
    was       TEXT    NOT NULL,
    state     TEXT    NOT NULL,
    class     TEXT    NOT NULL,
    code      TEXT    NOT NULL,
    at        TEXT    NOT NULL,
    PRIMARY KEY (workspace, position),
    UNIQUE (task, number)
) STRICT, WITHOUT ROWID;

INSERT INTO transition_2 (workspace, position, task, number, id, run, attempt, was, state, class, code, at)
SELECT workspace, position, task, number, id, run, attempt, was, state, class, code, at FROM transition ORDER BY workspace, position;
DROP TABLE transition;
ALTER TABLE transition_2 RENAME TO transition;

-- A run reserves once and a reservation ends once.
CREATE TABLE entry_2 (
    workspace TEXT    NOT NULL REFERENCES workspace (id),
    seq       INTEGER NOT NULL, -- given once, like a position
    id        TEXT    NOT NULL,
    unit      TEXT    NOT NULL,
    period    TEXT    NOT NULL,
    kind      TEXT    NOT NULL CHECK (kind = 'reserve' OR kind = 'settle' OR kind = 'release' OR kind = 'grant'),
    amount    INTEGER NOT NULL CHECK (kind = 'grant' OR amount > 0),
    task      INTEGER REFERENCES task (seq),
    run       INTEGER NOT NULL,
    ends      INTEGER,
    at        TEXT    NOT NULL,
    PRIMARY KEY (workspace, seq),
    FOREIGN KEY (workspace, ends) REFERENCES entry_2 (workspace, seq),
    CHECK ((kind = 'settle' OR kind = 'release') = (ends IS NOT NULL)),
    CHECK ((kind = 'grant') = (task IS NULL))
) STRICT, WITHOUT ROWID;

INSERT INTO entry_2 (workspace, seq, id, unit, period, kind, amount, task, run, ends, at)
SELECT workspace, seq, id, unit, period, kind, amount, task, run, ends, at FROM entry ORDER BY workspace, seq;
DROP TABLE entry;
ALTER TABLE entry_2 RENAME TO entry;
CREATE UNIQUE INDEX entry_grant ON entry (id) WHERE kind = 'grant';
CREATE UNIQUE INDEX entry_reservation ON entry (task, run) WHERE kind = 'reserve';
CREATE UNIQUE INDEX entry_ending ON entry (ends) WHERE ends IS NOT NULL;
