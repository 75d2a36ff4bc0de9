//! The embedded queue: an SQLite file that any number of processes of one machine share. A claim is one transaction.

use super::{Claim, Counts, MARGIN, Queue, QueueError};
use crate::message::Message;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
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
);
CREATE INDEX IF NOT EXISTS by_state ON messages (state, until_ms, seq);
";
/// How long another process may hold the file.
const BUSY: Duration = Duration::from_secs(30);
/// How often an empty queue is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// A queue in a file.
pub struct SqliteQueue {
    name: String,
    file: Connection,
    deliveries: u32,
    clock: Clock,
}

/// The wall clock: what processes of one machine share beside the file.
type Clock = Box<dyn Fn() -> SystemTime + Send>;

impl SqliteQueue {
    /// Opens or creates the file.
    pub fn open(path: &Path) -> Result<SqliteQueue, QueueError> {
        let name = format!("sqlite:{}", path.display());
        let open = || {
            let file = Connection::open(path)?;
            file.busy_timeout(BUSY)?;
            file.pragma_update(None, "journal_mode", "WAL")?;
            file.pragma_update(None, "synchronous", "NORMAL")?;
            file.execute_batch(SCHEMA)?;
            Ok(file)
        };
        match open() {
            Ok(file) => Ok(SqliteQueue {
                name,
                file,
                deliveries: 3,
                clock: Box::new(SystemTime::now),
            }),
            Err(error) => Err(told(&name, &error)),
        }
    }

    /// How often messages that are sent from now on may be delivered.
    pub fn with_deliveries(mut self, deliveries: u32) -> SqliteQueue {
        self.deliveries = deliveries;
        self
    }

    /// Takes the time from elsewhere.
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
            // immediate: the write lock is taken before anything is read, so no other claim comes between
            let transaction = self
                .file
                .transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = act(&transaction)?;
            transaction.commit()?;
            Ok(done)
        };
        run().map_err(|error| told(name, &error))
    }

    fn try_claim(&mut self, worker: &str) -> Result<Option<Claim>, QueueError> {
        let now = self.now_ms();
        self.transaction(|file| {
            file.execute(
                "UPDATE messages SET state = 'dead', reason = coalesce(reason || '; ', '') || attempts || ' deliveries ended without an answer'
                 WHERE state = 'claimed' AND until_ms <= ?1 AND attempts >= most",
                params![now],
            )?;
            let next = file
                .query_row(
                    "SELECT seq, body, attempts, hold_ms FROM messages
                     WHERE (state = 'waiting' OR state = 'claimed') AND until_ms <= ?1 ORDER BY seq LIMIT 1",
                    params![now],
                    |row| {
                        Ok((
                            row.get::<_, i64>(0)?,
                            row.get::<_, String>(1)?,
                            row.get::<_, u32>(2)?,
                            row.get::<_, i64>(3)?,
                        ))
                    },
                )
                .optional()?;
            let Some((seq, body, attempts, hold)) = next else {
                return Ok(None);
            };
            let attempt = attempts + 1;
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
}

impl Queue for SqliteQueue {
    fn send(&mut self, messages: &mut dyn Iterator<Item = Message>) -> Result<u64, QueueError> {
        let deliveries = self.deliveries;
        let name = self.name.clone();
        let mut new = 0;
        let texts = messages.map(|message| {
            let text = serde_json::to_string(&message).map_err(|error| QueueError::Failed {
                name: name.clone(),
                words: error.to_string(),
            });
            (message, text)
        });
        let mut trouble = None;
        self.transaction(|file| {
            let mut insert = file.prepare(
                "INSERT OR IGNORE INTO messages (id, body, hold_ms, most) VALUES (?1, ?2, ?3, ?4)",
            )?;
            for (message, text) in texts {
                match text {
                    Ok(text) => {
                        let hold = Duration::from_millis(message.recipe.ms) + MARGIN;
                        let hold = i64::try_from(hold.as_millis()).unwrap_or(i64::MAX);
                        let id = format!("{}/{}", message.plan, message.id);
                        new += insert.execute(params![id, text, hold, deliveries])? as u64;
                    }
                    Err(error) => trouble = Some(error),
                }
            }
            Ok(())
        })?;
        trouble.map_or(Ok(new), Err)
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
        let Some((seq, attempt)) = receipt(claim) else {
            return Ok(false);
        };
        let changed = self.transaction(|file| {
            file.execute(
                "UPDATE messages SET state = 'done' WHERE seq = ?1 AND attempts = ?2 AND state = 'claimed'",
                params![seq, attempt],
            )
        })?;
        Ok(changed == 1)
    }

    fn failed(&mut self, claim: &Claim, reason: &str, is_final: bool) -> Result<(), QueueError> {
        let Some((seq, attempt)) = receipt(claim) else {
            return Ok(());
        };
        self.transaction(|file| {
            file.execute(
                "UPDATE messages SET state = CASE WHEN ?4 OR attempts >= most THEN 'dead' ELSE 'waiting' END, until_ms = 0, reason = ?3
                 WHERE seq = ?1 AND attempts = ?2 AND state = 'claimed'",
                params![seq, attempt, reason, is_final],
            )
        })?;
        Ok(())
    }

    fn release(&mut self, claim: &Claim) -> Result<(), QueueError> {
        let Some((seq, attempt)) = receipt(claim) else {
            return Ok(());
        };
        self.transaction(|file| {
            file.execute(
                "UPDATE messages SET state = 'waiting', until_ms = 0, attempts = attempts - 1
                 WHERE seq = ?1 AND attempts = ?2 AND state = 'claimed'",
                params![seq, attempt],
            )
        })?;
        Ok(())
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
        self.transaction(|file| {
            let of = |state: &str| {
                file.query_row(
                    "SELECT count(*) FROM messages WHERE state = ?1",
                    params![state],
                    |row| row.get::<_, i64>(0),
                )
                .map(i64::unsigned_abs)
            };
            Ok(Counts {
                waiting: of("waiting")?,
                claimed: of("claimed")?,
                done: Some(of("done")?),
                dead: Some(of("dead")?),
            })
        })
    }

    fn dead(&mut self) -> Result<Vec<(String, String)>, QueueError> {
        self.transaction(|file| {
            let mut rows = file.prepare(
                "SELECT body, coalesce(reason, 'no reason given') FROM messages WHERE state = 'dead' ORDER BY seq",
            )?;
            let dead = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            dead.collect()
        })
    }
}

fn receipt(claim: &Claim) -> Option<(i64, u32)> {
    let (seq, attempt) = claim.receipt.split_once('.')?;
    Some((seq.parse().ok()?, attempt.parse().ok()?))
}

fn told(name: &str, error: &rusqlite::Error) -> QueueError {
    use rusqlite::ErrorCode;
    let name = name.to_owned();
    let words = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::CannotOpen) => QueueError::Missing { name, words },
        Some(ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => QueueError::Failed {
            name,
            words: format!("{words}: is the folder writable?"),
        },
        Some(ErrorCode::NotADatabase) => QueueError::Failed {
            name,
            words: format!("{words}: name another file"),
        },
        Some(ErrorCode::DiskFull) => QueueError::Failed {
            name,
            words: format!("{words}: make room; nothing that was finished is lost"),
        },
        _ => QueueError::Failed { name, words },
    }
}
