//! The embedded queue: an SQLite file that any number of processes of one machine share. A claim is
//! one transaction.
//!
//! Anyone who can write to the file can write any value, so the type of a value is never an error
//! here. A body of any type is returned as text, and the worker gives the message up.

use super::{Claim, Counts, DeadMessage, MARGIN, Queue, QueueError};
use crate::message::Message;
use crate::private;
use crate::store::FailedPlace;
use rusqlite::types::ValueRef;
use rusqlite::{
    Connection, OptionalExtension, Row, ToSql, Transaction, TransactionBehavior, params,
};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS messages (
  seq      INTEGER PRIMARY KEY,
  id       TEXT NOT NULL UNIQUE,
  body     TEXT NOT NULL,
  hold_ms  INTEGER NOT NULL,
  most     INTEGER NOT NULL,
  state    TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'claimed', 'done', 'dead')),
  attempts INTEGER NOT NULL DEFAULT 0,
  until_ms INTEGER NOT NULL DEFAULT 0,
  worker   TEXT,
  reason   TEXT
) STRICT;
CREATE INDEX IF NOT EXISTS by_state ON messages (state, until_ms, seq);
";
/// How long another process may hold the file's lock.
const BUSY: Duration = Duration::from_secs(30);
/// Interval between two looks at an empty queue.
const LOOK: Duration = Duration::from_millis(50);
/// Interval between two attempts to open a file that others open, too.
const RETRY: Duration = Duration::from_millis(10);
/// Messages per transaction, which holds the lock for milliseconds.
const BATCH: usize = 500;

/// A queue in an SQLite file.
pub struct SqliteQueue {
    name: String,
    file: Connection,
    deliveries: u32,
    share: Option<Share>,
    clock: Clock,
}

/// The messages of one plan, and the limit of those that workers hold at the same time.
struct Share {
    /// Prefix of the ids of its messages.
    prefix: String,
    at_once: u32,
}

/// The wall clock: in addition to the file, all that processes of one machine share.
type Clock = Box<dyn Fn() -> SystemTime + Send>;

impl SqliteQueue {
    /// Opens the file, or creates one for its owner only.
    ///
    /// # Errors
    /// If the file is no queue, or if other processes hold its lock for too long.
    pub fn open(path: &Path) -> Result<SqliteQueue, QueueError> {
        let name = format!("sqlite:{}", path.display());
        // messages hold header fields; SQLite copies the permissions of the file to its -wal and
        // -shm
        private::make_file(path);
        let deadline = Instant::now() + BUSY;
        loop {
            match prepare(path) {
                // the busy timeout does not cover locks that could cause a deadlock
                // (sqlite3_busy_handler)
                Err(error) if is_busy(&error) && Instant::now() < deadline => {
                    std::thread::sleep(RETRY);
                }
                prepared => {
                    let file = prepared.map_err(|error| failure(&name, &error))?;
                    return Ok(SqliteQueue {
                        name,
                        file,
                        deliveries: 3,
                        share: None,
                        clock: Box::new(SystemTime::now),
                    });
                }
            }
        }
    }

    /// Limits this queue to the messages of one plan. Workers hold at most `at_once` of them at the
    /// same time, so several coordinators of a plan together keep its rate.
    #[must_use]
    pub fn of_plan(mut self, plan: &str, at_once: u32) -> SqliteQueue {
        self.share = Some(Share {
            prefix: format!("{plan}/"),
            at_once,
        });
        self
    }

    /// Sets the number of deliveries of messages that are sent later.
    #[must_use]
    pub fn with_deliveries(mut self, deliveries: u32) -> SqliteQueue {
        self.deliveries = deliveries;
        self
    }

    /// Replaces the clock.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> SystemTime + Send + 'static) -> SqliteQueue {
        self.clock = Box::new(clock);
        self
    }

    fn now_ms(&self) -> i64 {
        let since = (self.clock)().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| {
            i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
        })
    }

    fn transaction<T>(
        &mut self,
        act: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, QueueError> {
        let name = &self.name;
        let run = || {
            // immediate: takes the write lock before reading, so that no other claim comes between
            let transaction = self
                .file
                .transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = act(&transaction)?;
            transaction.commit()?;
            Ok(done)
        };
        run().map_err(|error| failure(name, &error))
    }

    /// Prefix of the ids of our messages; `None` if all messages are ours.
    fn prefix(&self) -> Option<String> {
        self.share.as_ref().map(|share| share.prefix.clone())
    }

    fn try_claim(&mut self, worker: &str) -> Result<Option<Claim>, QueueError> {
        let now = self.now_ms();
        let prefix = self.prefix();
        let at_once = self.share.as_ref().map_or(u32::MAX, |share| share.at_once);
        self.transaction(|file| {
            file.execute(
                "UPDATE messages SET state = 'dead', reason = coalesce(reason || '; ', '') || attempts || ' deliveries ended without a result'
                 WHERE state = 'claimed' AND until_ms <= ?1 AND attempts >= most",
                params![now],
            )?;
            let held: u32 = file.query_row(
                "SELECT count(*) FROM messages WHERE state = 'claimed' AND until_ms > ?1 AND (?2 IS NULL OR substr(id, 1, length(?2)) = ?2)",
                params![now, prefix],
                |row| row.get(0),
            )?;
            if held >= at_once {
                return Ok(None);
            }
            let next = file
                .query_row(
                    "SELECT seq, body, attempts, hold_ms FROM messages
                     WHERE (state = 'waiting' OR state = 'claimed') AND until_ms <= ?1 AND (?2 IS NULL OR substr(id, 1, length(?2)) = ?2)
                     ORDER BY seq LIMIT 1",
                    params![now, prefix],
                    |row| Ok((row.get(0)?, text(row, 1)?, number(row, 2)?, number(row, 3)?)),
                )
                .optional()?;
            let Some((seq, body, attempts, hold)) = next else {
                return Ok(None);
            };
            let seq: i64 = seq;
            let attempt = u32::try_from(attempts.max(0)).map_or(u32::MAX, |count| count.saturating_add(1));
            let hold = hold.max(MARGIN.as_millis() as i64);
            file.execute(
                "UPDATE messages SET state = 'claimed', attempts = ?2, until_ms = ?3, worker = ?4 WHERE seq = ?1",
                params![seq, attempt, now.saturating_add(hold), worker],
            )?;
            Ok(Some(Claim {
                body,
                receipt: format!("{seq}.{attempt}"),
                attempt,
            }))
        })
    }

    /// Changes the message of a claim; false if the claim has expired. `set` names the values from
    /// `?3` on.
    fn change(
        &mut self,
        claim: &Claim,
        set: &str,
        values: &[&dyn ToSql],
    ) -> Result<bool, QueueError> {
        let Some((seq, attempt)) = receipt(claim) else {
            return Ok(false);
        };
        let update = format!(
            "UPDATE messages SET {set} WHERE seq = ?1 AND attempts = ?2 AND state = 'claimed'"
        );
        let values = [&[&seq as &dyn ToSql, &attempt], values].concat();
        let changed = self.transaction(|file| file.execute(&update, &*values))?;
        Ok(changed == 1)
    }

    fn send_batch(&mut self, batch: &[Message]) -> Result<u64, QueueError> {
        let deliveries = self.deliveries;
        let mut rows = Vec::with_capacity(batch.len());
        for message in batch {
            let failed = |error: serde_json::Error| FailedPlace::new(&self.name, error.to_string());
            let body = serde_json::to_string(message)
                .map_err(|error| QueueError::Failed(failed(error)))?;
            let hold = Duration::from_millis(message.job.ms) + MARGIN;
            let hold = i64::try_from(hold.as_millis()).unwrap_or(i64::MAX);
            rows.push((format!("{}/{}", message.plan, message.id), body, hold));
        }
        self.transaction(|file| {
            let mut insert = file.prepare(
                "INSERT OR IGNORE INTO messages (id, body, hold_ms, most) VALUES (?1, ?2, ?3, ?4)",
            )?;
            let mut new = 0;
            for (id, body, hold) in &rows {
                new += insert.execute(params![id, body, hold, deliveries])? as u64;
            }
            Ok(new)
        })
    }
}

/// Opens the file and creates the table if there is none.
fn prepare(path: &Path) -> rusqlite::Result<Connection> {
    let mut file = Connection::open(path)?;
    file.busy_timeout(BUSY)?;
    file.pragma_update(None, "journal_mode", "WAL")?;
    file.pragma_update(None, "synchronous", "NORMAL")?;
    let is_there = "SELECT count(*) FROM sqlite_master WHERE name IN ('messages', 'by_state')";
    let there: u32 = file.query_row(is_there, [], |row| row.get(0))?;
    if there < 2 {
        let transaction = file.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(SCHEMA)?;
        transaction.commit()?;
    }
    Ok(file)
}

/// A column of any type as text.
fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    Ok(match row.get_ref(column)? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            String::from_utf8_lossy(bytes).into_owned()
        }
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => String::new(),
    })
}

/// A column as a number; 0 if it is none.
fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<i64> {
    Ok(row.get_ref(column)?.as_i64().unwrap_or(0))
}

impl Queue for SqliteQueue {
    fn send(&mut self, messages: &mut dyn Iterator<Item = Message>) -> Result<u64, QueueError> {
        let mut new = 0;
        loop {
            let batch: Vec<Message> = (&mut *messages).take(BATCH).collect();
            if batch.is_empty() {
                return Ok(new);
            }
            new += self.send_batch(&batch)?;
        }
    }

    fn claim(&mut self, worker: &str, wait: Duration) -> Result<Option<Claim>, QueueError> {
        let deadline = Instant::now() + wait;
        loop {
            if let Some(claim) = self.try_claim(worker)? {
                return Ok(Some(claim));
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            std::thread::sleep(LOOK);
        }
    }

    fn done(&mut self, claim: &Claim) -> Result<bool, QueueError> {
        self.change(claim, "state = 'done'", &[])
    }

    fn failed(&mut self, claim: &Claim, reason: &str, is_final: bool) -> Result<(), QueueError> {
        let set = "state = CASE WHEN ?4 OR attempts >= most THEN 'dead' ELSE 'waiting' END, until_ms = 0, reason = ?3";
        self.change(claim, set, &[&reason, &is_final]).map(drop)
    }

    fn release(&mut self, claim: &Claim) -> Result<(), QueueError> {
        let set = "state = 'waiting', until_ms = 0, attempts = attempts - 1";
        self.change(claim, set, &[]).map(drop)
    }

    fn abandon(&mut self, worker: &str) -> Result<Option<u64>, QueueError> {
        let changed = self.transaction(|file| {
            file.execute(
                "UPDATE messages SET until_ms = 0, reason = 'its worker ended' WHERE worker = ?1 AND state = 'claimed'",
                params![worker],
            )
        })?;
        Ok(Some(changed as u64))
    }

    fn counts(&mut self) -> Result<Counts, QueueError> {
        let count = || {
            let mut counts = Counts {
                done: Some(0),
                dead: Some(0),
                ..Counts::default()
            };
            let mut states = self.file.prepare(
                "SELECT state, count(*) FROM messages WHERE ?1 IS NULL OR substr(id, 1, length(?1)) = ?1 GROUP BY state",
            )?;
            let mut rows = states.query(params![self.prefix()])?;
            while let Some(row) = rows.next()? {
                let count = number(row, 1)?.unsigned_abs();
                match &*text(row, 0)? {
                    "waiting" => counts.waiting = count,
                    "claimed" => counts.claimed = count,
                    "done" => counts.done = Some(count),
                    _ => counts.dead = Some(count),
                }
            }
            Ok(counts)
        };
        count().map_err(|error| failure(&self.name, &error))
    }

    fn dead(&mut self) -> Result<Vec<DeadMessage>, QueueError> {
        let list = || {
            let mut dead = self.file.prepare(
                "SELECT id, coalesce(reason, 'no reason given') FROM messages
                 WHERE state = 'dead' AND (?1 IS NULL OR substr(id, 1, length(?1)) = ?1) ORDER BY seq",
            )?;
            let letters = dead.query_map(params![self.prefix()], |row| {
                let id = text(row, 0)?;
                let (plan, message) = id.split_once('/').unwrap_or(("", &id));
                Ok(DeadMessage {
                    plan: plan.to_owned(),
                    message: message.to_owned(),
                    reason: text(row, 1)?,
                })
            })?;
            letters.collect::<rusqlite::Result<_>>()
        };
        list().map_err(|error| failure(&self.name, &error))
    }
}

fn receipt(claim: &Claim) -> Option<(i64, u32)> {
    let (seq, attempt) = claim.receipt.split_once('.')?;
    Some((seq.parse().ok()?, attempt.parse().ok()?))
}

fn is_busy(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked};
    matches!(
        error.sqlite_error_code(),
        Some(DatabaseBusy | DatabaseLocked)
    )
}

/// Maps an SQLite error to what the caller can do.
fn failure(name: &str, error: &rusqlite::Error) -> QueueError {
    use rusqlite::ErrorCode;
    if is_busy(error) {
        return QueueError::Busy {
            name: name.to_owned(),
            seconds: BUSY.as_secs(),
        };
    }
    let code = error.sqlite_error_code();
    let remedy = match code {
        Some(ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => ": is the folder writable?",
        Some(ErrorCode::NotADatabase) => ": name another file",
        Some(ErrorCode::DiskFull) => "; free some space. Finished results are kept",
        _ => "",
    };
    let failed = FailedPlace::new(name, format!("{error}{remedy}"));
    match code {
        Some(ErrorCode::CannotOpen) => QueueError::Missing(failed),
        _ => QueueError::Failed(failed),
    }
}
