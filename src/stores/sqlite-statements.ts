/** The key of a row that stands alone: the run, and in its lower half the number of the first event. */
const aloneId = (rid: string, seq: string): string => `(${rid} << 32) | ${seq}`
const lastSeq = '4294967295'
const aloneSeq = `(alone.id & ${lastSeq})`

/** Where a run's journal ends, of the run at hand: its last event, or 0. */
export const head: string = `max(
  coalesce((select batched.seq + batched.n - 1 from batched where batched.rid = run.rid order by batched.seq desc limit 1), 0),
  coalesce((
    select ${aloneSeq} + alone.n - 1 from alone
    where alone.id between ${aloneId('run.rid', '0')} and ${aloneId('run.rid', lastSeq)} order by alone.id desc limit 1), 0)) as head`

const columns = `rid, id, definition, version, tags, status, waits, ${head}, epoch, worker, started, ended`

/**
 * Every statement that is always the same. Each finds its rows by an index; a test looks at their plans. Parameters have no numbers: the
 * oldest Node with SQLite can't bind those.
 */
export const sql = {
  // Workers
  join: 'insert into worker (nonce, beat, pid, ttl) values (?, 0, ?, ?)',
  workers: 'select id, beat, ttl from worker',
  isWorker: 'select 1 from worker where id = ?',
  beat: 'update worker set beat = beat + 1 where id = ?',
  rejoin: 'insert into worker (id, nonce, beat, pid, ttl) values (?, ?, 0, ?, ?)',
  leave: 'delete from worker where id = ?',
  fence: 'delete from worker where id = ? and beat = ?',
  free: 'update run set worker = null, wake = ? where worker = ?',
  silence: 'delete from bell where worker = ?',

  // Who has which run
  due: `
    select rid, wake from run
    where definition = ? and version = ? and worker is null and ended is null and wake is not null and wake <= ?
    order by wake limit ?`,
  dueIn: `
    select rid, wake, definition, version from run where id = ? and worker is null and ended is null and wake is not null
    union all
    select rid, wake, definition, version from run
    where id > ? || ':' and id < ? || ';' and worker is null and ended is null and wake is not null`,
  nextWake: `
    select min(wake) as wake from run
    where definition = ? and version = ? and worker is null and ended is null and wake is not null`,
  claim: 'update run set worker = ?, epoch = epoch + 1 where rid = ?',
  owned: 'select id, epoch from run where worker = ?',
  ring: 'insert or ignore into bell (worker, rid) values (?, ?)',
  isRung: 'select 1 from bell where worker = ? limit 1',
  rung: 'select run.id from bell cross join run on run.rid = bell.rid where bell.worker = ?',

  // Appends
  standing: `select rid, ${head}, epoch, worker from run where id = ?` as string,
  create: `
    insert or ignore into run (id, definition, version, tags, status, waits, epoch, worker, wake, started, ended)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  goOn: `
    insert or ignore into batched (rid, seq, n, at, body)
    select rid, ?, ?, ?, ? from run where rid = ? and worker = ? and epoch = ?
      and not exists (select 1 from alone where id = ${aloneId('run.rid', '?')})` as string,
  goOnAlone: `
    insert or ignore into alone (id, n, at, body)
    select ${aloneId('rid', '?')}, ?, ?, ? from run where rid = ? and worker = ? and epoch = ?
      and not exists (select 1 from batched where batched.rid = run.rid and seq = ?)` as string,
  event: 'insert into batched (rid, seq, n, at, body) values (?, ?, ?, ?, ?)',
  tag: 'insert into tag (key, value, rid) values (?, ?, ?)',
  mark: 'insert into mark (rid, kind, key, body) values (?, ?, ?, ?) on conflict (rid, kind, key) do update set body = excluded.body',
  unmark: 'delete from mark where rid = ? and kind = ? and key = ?',
  snapshot: 'insert or replace into snapshot (rid, seq, version, body) values (?, ?, ?, ?)',
  blobIn: 'insert or ignore into blob (hash, body) values (?, ?)',
  blobRef: 'insert or ignore into blob_ref (rid, hash) values (?, ?)',

  // Records
  record: 'select revision, body from record where kind = ? and key = ?',
  put: `
    insert into record (kind, key, revision, body, rid) values (?, ?, ?, ?, ?)
    on conflict (kind, key) do update set revision = excluded.revision, body = excluded.body, rid = coalesce(excluded.rid, rid)`,
  wakeMarked: 'update run set wake = ? where rid in (select rid from mark where kind = ? and key = ?)',
  ringMarked: `
    insert or ignore into bell (worker, rid)
    select run.worker, run.rid from mark cross join run on run.rid = mark.rid where mark.kind = ? and mark.key = ? and run.worker is not null`,

  // Reading
  run: `select ${columns} from run where id = ?` as string,
  runOf: `select ${columns} from run where rid = ?` as string,
  newestSnapshot: 'select seq, version, body from snapshot where rid = ?',
  // A row may begin before the event that is asked for and still hold it.
  batched: `
    select seq, n, body from batched
    where rid = ? and seq >= coalesce((select max(seq) from batched where rid = ? and seq <= ?), 0) and seq + n - 1 > ?
    order by seq limit ?`,
  alone: `
    select ${aloneSeq} as seq, n, body from alone
    where id >= coalesce((select max(id) from alone where id between ${aloneId('?', '0')} and ${aloneId('?', '?')}), ${aloneId('?', '0')})
      and id <= ${aloneId('?', lastSeq)} and ${aloneSeq} + n - 1 > ?
    order by id limit ?` as string,
  // By rowid: a mark that is changed keeps its own, and a new one has a higher one than all that are there.
  marks: 'select run.id as run, mark.key, mark.body from mark cross join run on run.rid = mark.rid where mark.kind = ? order by mark.rowid',
  marksOf: `
    select run.id as run, mark.key, mark.body from run cross join mark on mark.rid = run.rid
    where run.id = ? and mark.kind = ? order by mark.rowid`,
  records: 'select key, revision, body from record where kind = ?',
  blob: 'select body from blob where hash = ?',

  // What is kept no longer
  ended: `
    select rid, tags from run
    where ended is not null and ended < ?
      and not exists (select 1 from run as root where root.id = substr(run.id, 1, instr(run.id, ':') - 1) and root.ended is null)
      and (instr(run.id, ':') > 0 or not exists (select 1 from run as below where below.id > run.id || ':' and below.id < run.id || ';'))
    order by ended limit ?`,
  refsOf: 'select hash from blob_ref where rid = ?',
  dropRefs: 'delete from blob_ref where rid = ?',
  dropBlob: 'delete from blob where hash = ? and not exists (select 1 from blob_ref where blob_ref.hash = blob.hash)',
  dropBatched: 'delete from batched where rid = ?',
  dropAlone: `delete from alone where id between ${aloneId('?', '0')} and ${aloneId('?', lastSeq)}` as string,
  dropSnapshot: 'delete from snapshot where rid = ?',
  dropMarks: 'delete from mark where rid = ?',
  dropTag: 'delete from tag where key = ? and value = ? and rid = ?',
  dropRecords: 'delete from record where rid = ?',
  dropRun: 'delete from run where rid = ?',

  version: 'pragma data_version',
} as const
