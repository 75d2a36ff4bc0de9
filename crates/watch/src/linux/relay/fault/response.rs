//! What a fault makes of the bytes of a response: cut within its body, cut behind its header
//! section, or announced as the last one.
//!
//! Each byte is shown to the observation before it is passed on, and none that the program does not
//! get.

use super::announcement::with_close;
use super::target::{FaultTarget, cannot_announce};
use super::{Faults, Shown};
use crate::platform::relay::direction::Passed;
use intact_ledger::{FaultMoment, FaultObstacle, FaultPoint, Protocol};
use intact_observe::{Progress, ResponsePart, Side};

impl FaultTarget {
    /// Takes bytes of a response.
    pub(super) fn take_response(
        &mut self,
        bytes: &[u8],
        faults: &mut Faults,
        seen: &mut Shown<'_, '_>,
    ) -> Passed {
        match faults.config.kind.row().moment {
            FaultMoment::Body => self.cut_body(bytes, faults, seen),
            FaultMoment::Headers => self.cut_behind_head(bytes, faults, seen),
            FaultMoment::Age | FaultMoment::Shutdown => self.announce(bytes, faults, seen),
            _ => {
                seen.show(Side::Server, bytes);
                Passed::All
            }
        }
    }

    /// Shows bytes of the server, `step` at a time, until `is_there`. How many were shown.
    fn show_until(
        bytes: &[u8],
        step: usize,
        seen: &mut Shown<'_, '_>,
        is_there: impl Fn(&Progress) -> bool,
    ) -> Option<usize> {
        let mut shown = 0;
        for piece in bytes.chunks(step) {
            seen.show(Side::Server, piece);
            shown += piece.len();
            if seen.progress().is_some_and(|now| is_there(&now)) {
                return Some(shown);
            }
        }
        None
    }

    /// Cuts a response within its body.
    fn cut_body(&mut self, bytes: &[u8], faults: &mut Faults, seen: &mut Shown<'_, '_>) -> Passed {
        let at = seen.now();
        let is_plain = seen
            .progress()
            .is_some_and(|now| !now.is_tls && now.protocol != Some(Protocol::Http2));
        let mut shown = 0;
        if is_plain {
            let in_body =
                |now: &Progress| now.open == 0 || now.response == Some(ResponsePart::Body);
            let Some(begun) = FaultTarget::show_until(bytes, 1, seen, in_body) else {
                return Passed::All;
            };
            shown = begun;
        }
        // a frame and a record are opened by their last byte only: all but the last byte cuts the
        // last of them
        let rest = &bytes[shown..];
        let most = match is_plain {
            true => rest.len() / 2,
            false => rest.len() - 1,
        };
        if most > 0 {
            seen.show(Side::Server, &rest[..most]);
        }
        match seen.progress() {
            Some(now) if now.open > 0 => {
                let point = match now.response {
                    Some(ResponsePart::Body) => FaultPoint::ResponseBody,
                    _ => FaultPoint::ResponseHead,
                };
                self.decide(point, at, &now, 0);
                Passed::First(shown + most)
            }
            _ => {
                seen.show(Side::Server, &rest[most..]);
                self.note(FaultObstacle::NoBody, faults);
                Passed::All
            }
        }
    }

    /// Cuts a response behind its header section.
    fn cut_behind_head(
        &mut self,
        bytes: &[u8],
        faults: &mut Faults,
        seen: &mut Shown<'_, '_>,
    ) -> Passed {
        let at = seen.now();
        if seen.progress().is_some_and(|now| now.is_inferred) {
            seen.show(Side::Server, bytes);
            self.note(FaultObstacle::Encrypted, faults);
            return Passed::All;
        }
        let is_there = |now: &Progress| now.open == 0 || now.response.is_some();
        let Some(shown) = FaultTarget::show_until(bytes, 1, seen, is_there) else {
            return Passed::All;
        };
        match seen.progress() {
            Some(now) if now.open > 0 => {
                self.decide(FaultPoint::ResponseBody, at, &now, 0);
                Passed::Last(shown)
            }
            now => {
                seen.show(Side::Server, &bytes[shown..]);
                let is_tls = now.is_some_and(|now| now.is_tls);
                let why = match is_tls {
                    // the header section and the body came in one record
                    true => FaultObstacle::Encrypted,
                    false => FaultObstacle::NoBody,
                };
                self.note(why, faults);
                Passed::All
            }
        }
    }

    /// Announces the end in a response that begins.
    fn announce(&mut self, bytes: &[u8], faults: &mut Faults, seen: &mut Shown<'_, '_>) -> Passed {
        let progress = seen.progress();
        let obstacle = progress.and_then(|now| cannot_announce(&now, faults.config.kind.row()));
        if let Some(why) = obstacle {
            self.note(why, faults);
        }
        let is_http2 = progress.is_some_and(|now| now.protocol == Some(Protocol::Http2));
        let begins = progress.is_some_and(|now| now.response.is_none());
        let announced = match obstacle.is_none() && begins && !is_http2 {
            true => with_close(bytes),
            false => None,
        };
        self.is_announced |= announced.is_some();
        seen.show(Side::Server, announced.as_deref().unwrap_or(bytes));
        if let (true, Some(turn)) = (self.is_announced, &self.turn) {
            faults.strike_pool(&turn.destination, self.id);
        }
        announced.map_or(Passed::All, Passed::Instead)
    }
}
