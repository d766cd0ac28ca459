-- +goose Up

CREATE TABLE workspace (
    id  TEXT PRIMARY KEY,
    doc TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- A task is its document; the columns are what a write is decided by or looked
-- up by. RUNNING if and only if a lease is held, and then there is an end to it.
CREATE TABLE task (
    seq         INTEGER PRIMARY KEY,
    id          TEXT    NOT NULL UNIQUE,
    workspace   TEXT    NOT NULL REFERENCES workspace (id),
    kind        TEXT    NOT NULL,
    state       TEXT    NOT NULL CHECK (state IN ('PENDING', 'RUNNING', 'RETRYING', 'SUCCEEDED', 'FAILED')),
    version     INTEGER NOT NULL CHECK (version > 0),
    token       TEXT    NOT NULL,
    due         INTEGER, -- nanoseconds since 1970; NULL is never
    created     INTEGER NOT NULL,
    doc         TEXT    NOT NULL,
    CHECK ((state = 'RUNNING') = (token <> '')),
    CHECK (state NOT IN ('PENDING', 'RUNNING', 'RETRYING') OR due IS NOT NULL)
) STRICT;

CREATE INDEX task_due ON task (due, id) WHERE due IS NOT NULL;
CREATE INDEX task_list ON task (workspace, kind, state, created, id);

CREATE TABLE identity (
    hash    BLOB PRIMARY KEY,
    task    INTEGER NOT NULL, -- task.seq; written before the task, so no reference
    expires INTEGER -- NULL: never
) STRICT, WITHOUT ROWID;

-- Rows are only ever added, so a position is given once.
CREATE TABLE transition (
    position  INTEGER PRIMARY KEY,
    workspace TEXT    NOT NULL,
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
    UNIQUE (task, number)
) STRICT;

CREATE INDEX transition_workspace ON transition (workspace, position);

CREATE TABLE record (
    seq       INTEGER PRIMARY KEY,
    id        TEXT    NOT NULL,
    number    INTEGER,
    workspace TEXT    NOT NULL REFERENCES workspace (id),
    wire      TEXT    NOT NULL,
    task      INTEGER NOT NULL REFERENCES task (seq),
    created   INTEGER NOT NULL,
    expires   INTEGER, -- NULL: never
    projected INTEGER NOT NULL,
    forgotten INTEGER NOT NULL,
    tenant    TEXT    NOT NULL,
    project   TEXT    NOT NULL,
    end_user  TEXT    NOT NULL,
    user_id   TEXT    NOT NULL,
    agent_id  TEXT    NOT NULL,
    run_id    TEXT    NOT NULL,
    topic     BLOB, -- what equal facts have in common; NULL: compared with nothing
    doc       TEXT    NOT NULL,
    UNIQUE (workspace, id),
    CHECK (NOT forgotten OR topic IS NULL)
) STRICT;

CREATE UNIQUE INDEX record_number ON record (number) WHERE number IS NOT NULL;
CREATE INDEX record_end_user ON record (workspace, end_user, created, id) WHERE end_user <> '' AND NOT forgotten;
CREATE INDEX record_user ON record (workspace, user_id, created, id) WHERE user_id <> '' AND NOT forgotten;
CREATE INDEX record_agent ON record (workspace, agent_id, created, id) WHERE agent_id <> '' AND NOT forgotten;
CREATE INDEX record_run ON record (workspace, run_id, created, id) WHERE run_id <> '' AND NOT forgotten;
CREATE INDEX record_topic ON record (topic, created, seq) WHERE topic IS NOT NULL;

CREATE TABLE balance (
    workspace TEXT    NOT NULL REFERENCES workspace (id),
    unit      TEXT    NOT NULL,
    period    TEXT    NOT NULL,
    granted   INTEGER NOT NULL,
    available INTEGER NOT NULL CHECK (available >= 0),
    reserved  INTEGER NOT NULL CHECK (reserved >= 0),
    spent     INTEGER NOT NULL CHECK (spent >= 0),
    PRIMARY KEY (workspace, unit, period),
    CHECK (granted = available + reserved + spent)
) STRICT, WITHOUT ROWID;

-- A run reserves once and a reservation ends once.
CREATE TABLE entry (
    seq       INTEGER PRIMARY KEY,
    id        TEXT    NOT NULL,
    workspace TEXT    NOT NULL REFERENCES workspace (id),
    unit      TEXT    NOT NULL,
    period    TEXT    NOT NULL,
    kind      TEXT    NOT NULL CHECK (kind IN ('grant', 'reserve', 'settle', 'release')),
    amount    INTEGER NOT NULL CHECK (kind = 'grant' OR amount > 0),
    task      INTEGER REFERENCES task (seq),
    run       INTEGER NOT NULL,
    ends      INTEGER REFERENCES entry (seq),
    at        TEXT    NOT NULL,
    CHECK ((kind IN ('settle', 'release')) = (ends IS NOT NULL)),
    CHECK ((kind = 'grant') = (task IS NULL))
) STRICT;

CREATE UNIQUE INDEX entry_grant ON entry (id) WHERE kind = 'grant';
CREATE UNIQUE INDEX entry_reservation ON entry (task, run) WHERE kind = 'reserve';
CREATE UNIQUE INDEX entry_ending ON entry (ends) WHERE ends IS NOT NULL;
CREATE INDEX entry_workspace ON entry (workspace, seq);

CREATE TABLE number (
    one  INTEGER PRIMARY KEY CHECK (one = 1),
    last INTEGER NOT NULL
) STRICT;

INSERT INTO number VALUES (1, 0);
