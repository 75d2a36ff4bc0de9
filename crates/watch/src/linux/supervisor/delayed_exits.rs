//! Ends of processes whose memory is still to be looked at: they wait for that, for a moment.

use super::Supervisor;
use crate::platform::secrets::ExitHolds;
use intact_sys::seccomp::{Notification, NotificationResponse};
use std::time::{Duration, Instant};

/// How long an end waits at most.
const LONGEST_HOLD: Duration = Duration::from_millis(250);

/// Processes that are about to end.
#[derive(Default)]
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
    /// When the next one must be let go.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.held.iter().map(|held| held.until).min()
    }
}

impl Supervisor {
    /// Has ends wait for this.
    pub(crate) fn hold_ends(&mut self, holds: ExitHolds) {
        holds.wake_by(self.waker.clone());
        self.leavers.holds = holds;
    }

    /// A process is about to end.
    pub(super) fn end(&mut self, notice: &Notification) -> Option<NotificationResponse> {
        let holds = |process| self.leavers.holds.holds(process);
        let leaver = self.processes.identify(notice.thread);
        let Some(leaver) = leaver.filter(|leaver| holds(leaver.process)) else {
            return Some(NotificationResponse::Continue);
        };
        self.leavers.held.push(DelayedExit {
            notice: notice.id,
            process: leaver.process,
            until: Instant::now() + LONGEST_HOLD,
        });
        None
    }

    /// Lets go who has waited long enough.
    pub(super) fn release_leavers(&mut self) {
        if self.leavers.held.is_empty() {
            return;
        }
        let now = Instant::now();
        let DelayedExits { holds, held } = &mut self.leavers;
        held.retain(|held| {
            let stays = now < held.until && holds.holds(held.process);
            if !stays {
                self.listener
                    .answer(held.notice, NotificationResponse::Continue);
            }
            stays
        });
    }
}
