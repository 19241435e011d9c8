BEGIN TRANSACTION;
CREATE TABLE answers (
            key TEXT PRIMARY KEY,
            fingerprint TEXT NOT NULL,
            code INTEGER NOT NULL,
            body TEXT NOT NULL,
            answered_at INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID
        ;
INSERT INTO "answers" VALUES('k','ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',200,'{"ok":true}',1799999999000);
CREATE TABLE assemblies (
            hash TEXT PRIMARY KEY,
            kit_version TEXT NOT NULL,
            instance TEXT NOT NULL,
            current INTEGER NOT NULL CHECK (current IN (0, 1)),
            published_at INTEGER NOT NULL,
            workflows TEXT NOT NULL
        ) STRICT
        ;
INSERT INTO "assemblies" VALUES('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','1.0.0.dev0','unit',1,1700000000000,'[{"name":"gate","machine_id":"gate","input":null,"shape":"0123456789ab","document":{"machine":"gate"}},{"name":"task","machine_id":"task","input":null,"shape":"0123456789ab","document":{"machine":"task"}},{"name":"timer","machine_id":"timer","input":null,"shape":"0123456789ab","document":{"machine":"timer"}}]');
CREATE TABLE meta (
            key TEXT PRIMARY KEY,
            value TEXT NOT NULL
        ) STRICT, WITHOUT ROWID
        ;
INSERT INTO "meta" VALUES('lease','2026-01-01T00:00:00.000000Z unit');
CREATE TABLE runs (
            id TEXT PRIMARY KEY,
            instance_id TEXT NOT NULL,
            workflow TEXT NOT NULL,
            assembly TEXT NOT NULL,
            shape TEXT NOT NULL,
            status TEXT NOT NULL
                CHECK (status IN ('live', 'done', 'error', 'cancelled', 'lost', 'drifted')),
            reason TEXT,
            seq INTEGER NOT NULL,
            started_at INTEGER NOT NULL,
            updated_at INTEGER NOT NULL,
            view TEXT NOT NULL,
            snapshot BLOB NOT NULL
        , gates INTEGER NOT NULL DEFAULT 0) STRICT
        ;
INSERT INTO "runs" VALUES('00000000-0000-4000-8000-000000000001','10000000-0000-4000-8000-000000000001','gate','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','0123456789ab','live',NULL,1,1799999999000,1799999999000,'{"status":"active","value":"review","context":{"seen":[]},"gates":[{"gate":"review","id":"g-1","path":["review"],"accepts":[],"meta":null}]}',X'7B227374617465223A22726576696577222C227365656E223A5B5D7D',1);
INSERT INTO "runs" VALUES('00000000-0000-4000-8000-000000000002','10000000-0000-4000-8000-000000000002','task','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','0123456789ab','live',NULL,1,1799999999000,1799999999000,'{"status":"active","value":"working","context":{"seen":[]},"gates":[]}',X'7B227374617465223A22776F726B696E67222C227365656E223A5B5D7D',0);
INSERT INTO "runs" VALUES('00000000-0000-4000-8000-000000000003','10000000-0000-4000-8000-000000000003','timer','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','0123456789ab','live',NULL,1,1799999999000,1799999999000,'{"status":"active","value":"waiting","context":{"seen":[]},"gates":[]}',X'7B227374617465223A2277616974696E67222C227365656E223A5B5D7D',0);
INSERT INTO "runs" VALUES('00000000-0000-4000-8000-000000000004','10000000-0000-4000-8000-000000000004','gate','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','0123456789ab','cancelled',NULL,1,1799999999000,1799999999000,'{"status":"active","value":"review","context":{"seen":[]},"gates":[{"gate":"review","id":"g-1","path":["review"],"accepts":[],"meta":null}]}',X'7B227374617465223A22726576696577222C227365656E223A5B5D7D',0);
CREATE TABLE tasks (
            run TEXT NOT NULL,
            key TEXT NOT NULL,
            machine TEXT NOT NULL,
            slot TEXT NOT NULL,
            input TEXT NOT NULL,
            PRIMARY KEY (run, key)
        ) STRICT, WITHOUT ROWID
        ;
INSERT INTO "tasks" VALUES('00000000-0000-4000-8000-000000000002','k1','[]','s','{"n":1}');
CREATE TABLE timers (
            run TEXT NOT NULL,
            key TEXT NOT NULL,
            due_at INTEGER NOT NULL,
            PRIMARY KEY (run, key)
        ) STRICT, WITHOUT ROWID
        ;
INSERT INTO "timers" VALUES('00000000-0000-4000-8000-000000000003','t1',1799999999500);
CREATE UNIQUE INDEX assemblies_current ON assemblies (current) WHERE current = 1;
CREATE INDEX runs_settled ON runs (updated_at) WHERE status <> 'live';
CREATE INDEX timers_due ON timers (due_at);
CREATE INDEX answers_answered ON answers (answered_at);
CREATE INDEX runs_gateless ON runs (id) WHERE status = 'live' AND gates = 0;
CREATE INDEX runs_live ON runs (assembly, workflow, shape) WHERE status = 'live';
CREATE INDEX runs_observed ON runs (workflow) WHERE status = 'live';
COMMIT;
PRAGMA user_version = 3;
