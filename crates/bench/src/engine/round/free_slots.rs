//! The free slots of an open loop. Must not choose one.

/// Slots that wait for a request to be due; those whose connection has ended meanwhile may be among
/// the open ones.
#[derive(Default)]
pub(super) struct FreeSlots {
    pub(super) open: Vec<usize>,
    pub(super) vacant: Vec<usize>,
}

impl FreeSlots {
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty() && self.vacant.is_empty()
    }
}
