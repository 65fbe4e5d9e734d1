import { TuttiError } from '../define/tutti-error.js'

/** "Tutt", in the header of every file of ours. */
export const applicationId = 0x54757474

/**
 * How a file of each version becomes one of the next. One that was released is never changed: another is added.
 *
 * - A row of events that is written alone stands in `alone`, by run and number in one, and costs one page of the log. Rows of many runs that are
 *   written at once stand in `batched`, as they come, and their index has runs side by side: by run, each would write a page of its own. In
 *   which of the two a row stands says nothing else; no two rows of a run begin at the same event, whichever they stand in.
 * - The indexes of due, owned and ended runs are partial: an append to a run that goes on touches none of them.
 * - A run's head is where its last event ends, and stands nowhere else: what happens most, its owner's append, touches only events.
 */
export const migrations: readonly string[] = [
  `
  create table worker (
    id integer primary key autoincrement,
    nonce text not null,
    beat integer not null,
    pid integer not null
  );
  create table run (
    rid integer primary key autoincrement,
    id text not null unique,
    definition text not null,
    version text not null,
    tags text not null,
    status text not null,
    waits text not null,
    head integer not null,
    epoch integer not null,
    worker integer,
    wake integer,
    started integer not null,
    ended integer
  );
  create index run_due on run (definition, version, wake) where worker is null and ended is null and wake is not null;
  create index run_owned on run (worker) where worker is not null;
  create index run_ended on run (ended) where ended is not null;
  create index run_status on run (status);
  create index run_definition on run (definition);
  create table event (
    rid integer not null,
    seq integer not null,
    n integer not null,
    at integer not null,
    body text not null
  );
  create unique index event_of_run on event (rid, seq);
  create table snapshot (
    rid integer primary key,
    seq integer not null,
    version text not null,
    body text not null
  );
  create table tag (
    key text not null,
    value text not null,
    rid integer not null,
    primary key (key, value, rid)
  ) without rowid;
  create table mark (
    rid integer not null,
    kind text not null,
    key text not null,
    body text not null
  );
  create unique index mark_of_run on mark (rid, kind, key);
  create index mark_key on mark (kind, key);
  create table record (
    kind text not null,
    key text not null,
    revision integer not null,
    body text not null,
    rid integer
  );
  create unique index record_key on record (kind, key);
  create index record_of_run on record (rid) where rid is not null;
  create table bell (
    worker integer not null,
    rid integer not null,
    primary key (worker, rid)
  ) without rowid;
  create table blob (
    hash text not null unique,
    body text not null
  );
  create table blob_ref (
    rid integer not null,
    hash text not null,
    primary key (rid, hash)
  ) without rowid;
  create index blob_ref_hash on blob_ref (hash);
  `,
  'alter table run drop column head',
  '-- The first event of a row says its number and its time for all of them: what an earlier version would take for damage.',
  '-- Several events may be written as one, which an earlier version would not know.',
  'alter table worker add column ttl integer',
  // By another name, so that who has the file open since before writes nothing more: it would not see what stands in the other.
  `
  alter table event rename to batched;
  create table alone (
    id integer primary key,
    n integer not null,
    at integer not null,
    body text not null
  );
  `,
]

/** What the header of a file says of it. */
export interface Header {
  readonly applicationId: number
  readonly version: number
  /** Whether anything at all is in it. */
  readonly empty: boolean
}

/** Throws if the file is another program's, or was written by a later version of this one than the one that is known. */
export function checkHeader({ applicationId: id, version, empty }: Header, path: string, known: number): void {
  if (id !== applicationId && !(id === 0 && version === 0 && empty)) throw notAStore(path, 'it is the database of another program')
  if (version > known) throw tooNew(path, version, known)
}

export function tooNew(path: string, version: number, known: number): TuttiError {
  return new TuttiError('STORE_TOO_NEW', `${path} has version ${version}, this program knows up to ${known}`, {
    hint: 'a later version of tutti has written it: install that one here, or open another path; the file was not changed',
  })
}

export function notAStore(path: string, why: string, cause?: unknown): TuttiError {
  return new TuttiError('NOT_A_STORE', `${path} is no store of tutti: ${why}`, {
    hint: 'open another path; the file was not changed',
    cause,
  })
}
