//! The page of what articles recommend. Must not describe clients beyond that.

use super::{at_once, copied, in_turn, version_key};
use crate::documents::common::page_without_run;
use crate::page::*;
use intact_fix::{Article, Catalogue, Count, Load, Trial, client_idle, fill_in};
use intact_units::plural::counted;
use std::time::Duration;

/// What articles recommend: each snippet as published, what it does today, and what to use instead.
pub fn fix_articles(catalogue: &Catalogue) -> Page<'static> {
    let subject = counted(catalogue.articles.len() as u64, "recommendation");
    let mut page = page_without_run("fix --articles", subject);
    page.verdict = ABOUT_ARTICLES.map(Text::prose).to_vec();
    for article in &catalogue.articles {
        let Some((client, variant)) = catalogue.variant_of(article, &article.with) else {
            continue;
        };
        let trials = trials(catalogue, article);
        let snippet = trials.last().map(|one| variant.snippet(one.with));
        let rows: Vec<(&Article, Trial<'_>)> = trials.iter().map(|one| (article, *one)).collect();
        let instead = match article.instead.as_deref() {
            None => text!(
                "Use it: `intact fix {}` has more of this client.",
                &client.id
            ),
            Some(id) => match catalogue.variant_of(article, id) {
                Some((_, other)) => text!(
                    "Instead: {} (`{}/{}`).",
                    Text::prose(&other.title),
                    &client.id,
                    &other.id
                ),
                None => Text::default(),
            },
        };
        let other = article.instead.as_deref().and_then(|id| {
            let (client, other) = catalogue.variant_of(article, id)?;
            let newest = super::rows(catalogue, client, other).pop()?;
            Some(fill_in(
                &other.snippet(newest.one),
                client_idle(EXAMPLE_LIMIT),
            ))
        });
        page.section(
            Section::new("article", Text::prose(&article.advice))
                .summary(Block::Code(copied(&snippet.unwrap_or_default())))
                .summary(effects(Rows::of(&rows)).table())
                .summary(instead)
                .summary(other.map(|lines| Block::Code(copied(&lines)))),
        );
    }
    page
}

const ABOUT_ARTICLES: [&str; 2] = [
    "What articles recommend, as published, with what it does in the versions measured.",
    "`10` and `3x10` are the connections for 10 requests in turn and for 3 rounds of 10 at once, without the recommendation and with it. Idle limits are \
     those for a server that closes idle connections after 60 s.",
];

/// The server's idle limit in lines that need one.
const EXAMPLE_LIMIT: Duration = Duration::from_secs(60);

/// The measurements of a recommendation, the newest runtime last.
fn trials<'a>(catalogue: &'a Catalogue, article: &'a Article) -> Vec<Trial<'a>> {
    let mut trials: Vec<Trial<'_>> = catalogue.trials(article).collect();
    trials.sort_by_key(|one| version_key(one.with.versions.get("node")));
    trials
}

/// What a recommendation changes, a row for each set of versions.
fn effects<'a>(rows: Rows<'a, (&'a Article, Trial<'a>)>) -> Rows<'a, (&'a Article, Trial<'a>)> {
    let pair = |trial: &Trial<'_>, of: fn(Option<&Load>) -> Option<&Count>| {
        let [without, with] = [trial.without, trial.with].map(|one| {
            let count = of(one.facts.plain.as_ref());
            count.map_or_else(|| "-".to_owned(), |count| count.connections.to_string())
        });
        format!("{without}, {with}")
    };
    rows.column("versions", |(_, trial)| trial.with.versions())
        .column("10: without, with", |(_, trial)| pair(trial, in_turn))
        .column("3x10: without, with", |(_, trial)| pair(trial, at_once))
        .column("verdict", |(_, trial)| trial.effect().words())
}
