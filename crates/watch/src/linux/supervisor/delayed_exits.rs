//! Ends of processes whose memory is still to be searched: the end waits for the search, at most a
//! quarter of a second.

use super::call_context::CallContext;
use crate::platform::secrets::ExitHolds;
use intact_sys::seccomp::{Notification, NotificationResponse};
use std::time::{Duration, Instant};

/// How long an end waits at most.
const LONGEST_HOLD: Duration = Duration::from_millis(250);

/// Processes that are about to end.
pub(super) struct DelayedExits {
    holds: ExitHolds,
    held: Vec<DelayedExit>,
}

/// A call that would end its process.
struct DelayedExit {
    notice: u64,
    process: u32,
    until: Instant,
}

impl DelayedExits {
    pub(super) fn new(holds: ExitHolds) -> DelayedExits {
        DelayedExits {
            holds,
            held: Vec::new(),
        }
    }

    /// When the next process must be released.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.held.iter().map(|held| held.until).min()
    }

    /// Takes an `exit_group`; `None`: the response comes later.
    pub(super) fn exit(
        &mut self,
        notice: &Notification,
        cx: &mut CallContext,
    ) -> Option<NotificationResponse> {
        let owner = cx.notifications.owner(notice.thread);
        let Some(owner) = owner.filter(|owner| self.holds.holds(owner.pid)) else {
            return Some(NotificationResponse::Continue);
        };
        self.held.push(DelayedExit {
            notice: notice.id,
            process: owner.pid,
            until: Instant::now() + LONGEST_HOLD,
        });
        None
    }

    /// Releases the processes that need not wait any longer.
    pub(super) fn release(&mut self, cx: &CallContext) {
        if self.held.is_empty() {
            return;
        }
        let now = Instant::now();
        self.held.retain(|held| {
            let stays = now < held.until && self.holds.holds(held.process);
            if !stays {
                let response = NotificationResponse::Continue;
                cx.notifications.respond(held.notice, response);
            }
            stays
        });
    }
}
