//! Connection numbers in a log, and what they prove.
//!
//! nginx and Envoy count their connections over all workers: a larger number is a later connection.
//! Must not look at times.

/// The numbers in a log so far.
#[derive(Debug, Default)]
pub(super) struct Serials {
    largest: Option<u64>,
    /// Smallest number of a connection that was opened after the log began. Every larger number is
    /// new, too.
    first_new: Option<u64>,
    /// Largest number whose connection was dropped; a later line may have it again.
    let_go: Option<u64>,
}

impl Serials {
    /// Whether the connection of an unknown number was opened after the log began. `is_late`: the
    /// log began so long ago that no older connection can have been silent since then.
    pub(super) fn is_new(&mut self, number: u64, is_late: bool) -> bool {
        let exceeds = |other: Option<u64>| other.is_none_or(|other| number > other);
        let is_largest = exceeds(self.largest);
        let follows_new = self.first_new.is_some() && exceeds(self.first_new);
        let is_new = exceeds(self.let_go) && (follows_new || (is_late && is_largest));
        self.largest = self.largest.max(Some(number));
        if is_new {
            self.first_new.get_or_insert(number);
        }
        is_new
    }

    /// Records that the connection of this number was dropped.
    pub(super) fn let_go(&mut self, number: u64) {
        self.let_go = self.let_go.max(Some(number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_above_a_new_one_is_new_in_any_order() {
        let mut serials = Serials::default();
        let shown = [(105, false), (106, false), (107, true), (110, true)];
        let new = shown.map(|(number, is_late)| serials.is_new(number, is_late));
        assert_eq!(new, [false, false, true, true]);
        // concurrent requests end in another order than their connections were opened
        assert_eq!(
            [109, 108, 104].map(|number| serials.is_new(number, true)),
            [true, true, false]
        );
    }

    #[test]
    fn a_dropped_number_is_not_new_again() {
        let mut serials = Serials::default();
        assert!(serials.is_new(7, true));
        serials.let_go(7);
        assert!(!serials.is_new(7, true));
        assert!(serials.is_new(8, true));
    }
}
