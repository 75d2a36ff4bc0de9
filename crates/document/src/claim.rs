//! The verdict of a document: typed claims, ranked once. Must not know a document.

use crate::statement::Statement;
use serde::{Serialize, Serializer};
use std::ops::Deref;

/// What a claim is about. Claims stand in this order, in every document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClaimKind {
    /// The answer to the question that a run was made for.
    Answer,
    /// Requests, lookups, dials or invocations failed, or something hung.
    Failed,
    /// Responses had an error status.
    Errors,
    /// Reuse or latency changed for good.
    Changed,
    /// What could not be seen, so that nothing or little is known.
    Unseen,
    /// Time was lost, or is saved: how much.
    Time,
    /// Connections were opened for nothing.
    Opened,
    /// A detail of the loss: where most of it is.
    Where,
    /// What a finding warns of, in addition.
    Warned,
    /// What is well.
    Well,
    /// What is left to say.
    Note,
}

/// A statement of a verdict, with the loss that ranks it among those of its kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// What it is about.
    pub kind: ClaimKind,
    /// How large the loss is: a share of 1 of whatever was lost.
    pub loss: f64,
    /// The sentence, with its values.
    pub statement: Statement,
}

impl Claim {
    /// A claim with its loss, a share of 1.
    pub fn new(kind: ClaimKind, loss: f64, statement: impl Into<Statement>) -> Claim {
        Claim {
            kind,
            loss,
            statement: statement.into(),
        }
    }
}

/// A claim reads as its sentence.
impl Deref for Claim {
    type Target = str;

    fn deref(&self) -> &str {
        &self.statement
    }
}

impl PartialEq<&str> for Claim {
    fn eq(&self, sentence: &&str) -> bool {
        **self == **sentence
    }
}

/// The claims of a document in their order: by kind, then the largest loss first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claims(Vec<Claim>);

impl Claims {
    /// Ranks claims. Equal ones stay in the order in which they are made.
    pub fn ranked(claims: impl IntoIterator<Item = Claim>) -> Claims {
        let mut claims: Vec<Claim> = claims.into_iter().collect();
        claims.sort_by(|a, b| a.kind.cmp(&b.kind).then(b.loss.total_cmp(&a.loss)));
        Claims(claims)
    }

    /// The same with further claims.
    pub fn with(self, further: impl IntoIterator<Item = Claim>) -> Claims {
        Claims::ranked(self.0.into_iter().chain(further))
    }

    /// The same without those of one kind.
    #[must_use]
    pub fn without(mut self, kind: ClaimKind) -> Claims {
        self.0.retain(|claim| claim.kind != kind);
        self
    }

    /// The sentences, without the full stop of the last: a page ends a sentence.
    pub fn sentences(&self) -> impl Iterator<Item = &str> {
        let sentences = self.0.iter().map(|claim| &*claim.statement);
        sentences.map(|one| one.strip_suffix('.').unwrap_or(one))
    }
}

impl Deref for Claims {
    type Target = [Claim];

    fn deref(&self) -> &[Claim] {
        &self.0
    }
}

/// As the list of sentences.
impl Serialize for Claims {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.sentences())
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Claims {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Claims".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Vec::<String>::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_comes_before_what_was_lost_and_the_larger_loss_first() {
        let claims = Claims::ranked([
            Claim::new(ClaimKind::Well, 0.0, "well"),
            Claim::new(ClaimKind::Time, 0.31, "31 % is setup"),
            Claim::new(ClaimKind::Failed, 0.1, "3 lookups failed"),
            Claim::new(ClaimKind::Failed, 0.3, "9 of 30 failed"),
        ]);
        let all: Vec<&str> = claims.sentences().collect();
        assert_eq!(
            all,
            [
                "9 of 30 failed",
                "3 lookups failed",
                "31 % is setup",
                "well"
            ]
        );
        assert_eq!(claims.0[0].kind, ClaimKind::Failed);
    }
}
