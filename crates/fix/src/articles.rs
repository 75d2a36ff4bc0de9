//! Recommendations of articles and their measured effect. Each is a variant, measured like any
//! other.

use crate::catalogue::{Catalogue, Client, Variant};
use crate::facts::{Count, Measurement};
use intact_ledger::kinds;
use serde::{Deserialize, Serialize};

/// A recommendation that articles give.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Article {
    /// What is recommended, in a few words.
    pub advice: String,
    /// The client's id.
    pub client: String,
    /// The variant that follows the recommendation.
    pub with: String,
    /// The variant that does not.
    pub without: String,
    /// The better variant of the same client; absent if the recommendation is the best.
    #[serde(default)]
    pub instead: Option<String>,
}

kinds! {
    /// What following a recommendation changes.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Effect, words {
        /// Connections are reused with it, and not without it.
        TurnsReuseOn = "turns reuse on",
        /// Connections are reused without it, and not with it.
        TurnsReuseOff = "turns reuse off",
        /// Connections are reused either way.
        ReusesAnyway = "no effect: it reuses anyway",
        /// Connections are reused only by requests that wait for one.
        WhileRequestsWait = "reuses only while requests wait",
        /// Connections are reused in neither case.
        NoReuseEitherWay = "no effect: no reuse either way",
        /// One of the two was not measured.
        NotMeasured = "not measured",
    }
}

/// A recommendation measured in one set of versions.
#[derive(Clone, Copy, Debug)]
pub struct Trial<'a> {
    /// Following it.
    pub with: &'a Measurement,
    /// Not following it.
    pub without: &'a Measurement,
}

impl Trial<'_> {
    /// What following the recommendation changes, over plain HTTP.
    pub fn effect(&self) -> Effect {
        let in_turn = |one: &Measurement| {
            let load = one.facts.plain.as_ref()?;
            Some(load.sequential.is_reused())
        };
        let at_once = |one: &Measurement| -> Option<u64> {
            let load = one.facts.plain.as_ref()?;
            load.concurrent
                .as_ref()
                .map(|count: &Count| count.connections)
        };
        let is_fewer_at_once = at_once(self.with)
            .zip(at_once(self.without))
            .is_some_and(|(with, without)| with < without);
        match (in_turn(self.without), in_turn(self.with)) {
            (Some(false), Some(true)) => Effect::TurnsReuseOn,
            (Some(true), Some(false)) => Effect::TurnsReuseOff,
            (Some(true), Some(true)) => Effect::ReusesAnyway,
            (Some(false), Some(false)) if is_fewer_at_once => Effect::WhileRequestsWait,
            (Some(false), Some(false)) => Effect::NoReuseEitherWay,
            _ => Effect::NotMeasured,
        }
    }
}

impl Catalogue {
    /// A variant that a recommendation names.
    pub fn variant_of(&self, article: &Article, id: &str) -> Option<(&Client, &Variant)> {
        let client = self.clients.iter().find(|one| one.id == article.client)?;
        let variant = client.variants.iter().find(|one| one.id == id)?;
        Some((client, variant))
    }

    /// Whether a recommendation, or what to use instead of it, is this variant.
    pub fn is_recommended(&self, client: &Client, variant: &Variant) -> bool {
        self.articles.iter().any(|article| {
            let is_named = |id: &String| *id == variant.id;
            article.client == client.id
                && (is_named(&article.with) || article.instead.as_ref().is_some_and(is_named))
        })
    }

    /// The measurements of a recommendation: one per set of versions with both variants.
    pub fn trials<'a>(&'a self, article: &'a Article) -> impl Iterator<Item = Trial<'a>> {
        let of = move |variant: &'a str| {
            let all = self.measured.iter();
            all.filter(move |one| one.client == article.client && one.variant == variant)
        };
        of(&article.with).filter_map(move |with| {
            let without = of(&article.without).find(|other| other.versions == with.versions)?;
            Some(Trial { with, without })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_article_was_measured_with_and_without() {
        let catalogue = Catalogue::embedded().unwrap();
        assert!(catalogue.articles.len() >= 17);
        for article in &catalogue.articles {
            let mut trials = 0;
            for trial in catalogue.trials(article) {
                assert_ne!(trial.effect(), Effect::NotMeasured, "{}", article.advice);
                trials += 1;
            }
            assert!(trials > 0, "{}: never measured", article.advice);
            let named = [
                Some(&article.with),
                Some(&article.without),
                article.instead.as_ref(),
            ];
            for id in named.into_iter().flatten() {
                assert!(
                    catalogue.variant_of(article, id).is_some(),
                    "{}: {id}",
                    article.advice
                );
            }
        }
    }

    #[test]
    fn advice_without_effect_names_what_to_use_instead() {
        let catalogue = Catalogue::embedded().unwrap();
        for article in &catalogue.articles {
            let effects: Vec<Effect> = catalogue.trials(article).map(|one| one.effect()).collect();
            let is_best = effects.iter().all(|one| *one == Effect::TurnsReuseOn);
            assert_eq!(
                article.instead.is_none(),
                is_best,
                "{}: {effects:?}",
                article.advice
            );
        }
    }
}
