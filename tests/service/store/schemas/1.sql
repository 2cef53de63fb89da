BEGIN TRANSACTION;
CREATE TABLE audit (
    number integer primary key autoincrement,
    at integer not null,
    who text not null,
    what text not null,
    subject text not null,
    before text,
    after text
) strict;
INSERT INTO "audit" VALUES(1,1790000000000,'me','create','thermostat',NULL,'{}');
CREATE TABLE decision (
    policy text not null,
    seq integer not null,
    id text not null unique,
    version integer not null,
    evidence integer not null,
    state text not null,
    features text,
    action text not null,
    propensity real not null,
    allowed text,
    floor real not null,
    mode text not null,
    episode text,
    context text,
    token text not null,
    key text,
    digest blob,
    at integer not null,
    due integer not null,
    status text not null,
    taken text,
    taken_by text,
    primary key (policy, seq)
) strict;
INSERT INTO "decision" VALUES('thermostat',2,'thermostat-000000000002',1,0,'cool',NULL,'heat',3.00000000000000044408e-01,NULL,0.0,'live',NULL,NULL,'t1','k',X'3132',1790000002000,1790003602000,'learned',NULL,NULL);
CREATE TABLE event (
    policy text not null,
    seq integer not null,
    kind text not null,
    decision text,
    body text not null,
    at integer not null,
    primary key (policy, seq)
) strict, without rowid;
INSERT INTO "event" VALUES('thermostat',1,'version',NULL,'{}',1790000001000);
CREATE TABLE outcome (
    policy text not null,
    seq integer not null,
    decision text not null unique,
    next_state text,
    reward real,
    status text not null,
    evidence integer not null,
    token text not null,
    at integer not null,
    reported_at integer,
    primary key (policy, seq)
) strict, without rowid;
INSERT INTO "outcome" VALUES('thermostat',3,'thermostat-000000000002','comfortable',NULL,'learned',1,'t1',1790000003000,NULL);
CREATE TABLE policy (
    policy text primary key,
    settings text not null,
    etag integer not null,
    created integer not null
) strict;
INSERT INTO "policy" VALUES('thermostat','{"mode": "live"}',1,1790000000000);
CREATE TABLE removal (
    policy text not null,
    seq integer not null,
    before integer not null,
    rows integer not null,
    file text not null,
    at integer not null,
    primary key (policy, seq)
) strict;
CREATE TABLE snapshot (
    policy text not null,
    version integer not null,
    seq integer not null,
    hash blob not null,
    artefact blob not null,
    primary key (policy, version, seq)
) strict;
CREATE TABLE token (
    id text primary key,
    hash blob not null unique,
    name text not null,
    roles text not null,
    policies text,
    created integer not null,
    used integer,
    expires integer,
    needs_key integer not null
) strict;
INSERT INTO "token" VALUES('a',X'68','loop','[]',NULL,1790000000000,NULL,NULL,0);
CREATE TABLE version (
    policy text not null,
    version integer not null,
    sha256 text not null,
    artefact blob not null,
    seed blob not null,
    note text not null,
    despite text not null,
    who text not null,
    at integer not null,
    primary key (policy, version)
) strict;
INSERT INTO "version" VALUES('thermostat',1,'00ff',X'6172746566616374',X'73656564','first','[]','me',1790000000000);
CREATE UNIQUE INDEX decision_key on decision (policy, token, key) where key is not null;
CREATE INDEX decision_due on decision (policy, due, status)
    where status in ('open', 'waiting');
CREATE INDEX decision_unusual on decision (policy, status, seq)
    where status in ('cancelled', 'late', 'missing', 'new-label');
CREATE INDEX decision_at on decision (policy, at);
CREATE INDEX event_decision on event (decision) where decision is not null;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('audit',1);
COMMIT;
