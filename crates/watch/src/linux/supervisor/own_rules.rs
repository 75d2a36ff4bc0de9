//! Rules that the program gives itself for its own connects (Landlock): a connect of ours in its
//! place would break them.
//!
//! The kernel does not show which processes such rules bind; children inherit them, and lose their
//! parents. So once a rule on connects is in force, connects of all processes of the run are left
//! to the kernel.

use super::notifications::Notifications;
use intact_sys::seccomp::Notification;

/// linux/landlock.h: the flag of a call that only asks for the version.
const CREATE_RULESET_VERSION: u64 = 1;
/// `LANDLOCK_ACCESS_NET_CONNECT_TCP`.
const CONNECT_TCP: u64 = 2;
/// Where `struct landlock_ruleset_attr` has the rights to networks, and its length up to there.
const NET_RIGHTS: u64 = 8;
const WITH_NET_RIGHTS: u64 = 16;

/// What is known of the rules.
#[derive(Debug, Default)]
pub(super) struct OwnRules {
    /// A set of rules was made that leaves connects alone.
    is_plain_made: bool,
    /// A set of rules was made that binds connects, or that could not be read.
    is_binding_made: bool,
    /// Whether a rule on connects may bind some process of the run.
    pub(super) in_force: bool,
}

impl OwnRules {
    /// Takes `landlock_create_ruleset`.
    pub(super) fn create(&mut self, notice: &Notification, notifications: &Notifications) {
        let [attributes, len, flags, ..] = notice.arguments;
        if flags & CREATE_RULESET_VERSION != 0 {
            return;
        }
        let rights = if len < WITH_NET_RIGHTS {
            Some(0)
        } else {
            notifications.read_word(notice, attributes.wrapping_add(NET_RIGHTS))
        };
        self.made(rights);
    }

    /// A set of rules was made for these rights to networks; `None`: they are unknown.
    fn made(&mut self, rights: Option<u64>) {
        if rights.is_some_and(|rights| rights & CONNECT_TCP == 0) {
            self.is_plain_made = true;
        } else {
            self.is_binding_made = true;
        }
    }

    /// Takes `landlock_restrict_self`. Rules whose making was not seen may bind connects.
    pub(super) fn restrict(&mut self) {
        self.in_force |= self.is_binding_made || !self.is_plain_made;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_force_after(made: &[Option<u64>]) -> bool {
        let mut rules = OwnRules::default();
        for rights in made {
            rules.made(*rights);
            assert!(!rules.in_force);
        }
        rules.restrict();
        rules.in_force
    }

    #[test]
    fn only_rules_that_leave_connects_alone_do_not_matter() {
        assert!(!in_force_after(&[Some(0), Some(1)]));
        assert!(in_force_after(&[Some(CONNECT_TCP)]));
        assert!(in_force_after(&[Some(0), Some(CONNECT_TCP | 1)]));
        // could not be read, and was made before the run
        assert!(in_force_after(&[Some(0), None]));
        assert!(in_force_after(&[]));
    }
}
