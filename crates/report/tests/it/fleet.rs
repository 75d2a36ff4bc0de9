//! The pages of a campaign: a bench, and two checks that differ.

use crate::{check, made, written};
use intact_experiments::bench::Charts;
use intact_findings::fleet::{CampaignFacts, Outlier, ProfileMerge, TargetBench, TargetChecks};
use intact_findings::{Document, Parts};
use intact_ledger::{CampaignProgress, DeadLetter, Tally};
use intact_report::documents::{campaign, first_checks, profiles};
use intact_servers::check::CheckFacts;
use intact_traffic::timeline::Timeline;

fn facts() -> CampaignFacts {
    let Document {
        run,
        parts: Parts::Bench(bench),
    } = made::bench(60, "")
    else {
        unreachable!("a bench")
    };
    let profile = check::profile();
    let other = {
        let mut other = profile.clone();
        other.race = None;
        if let Some(idle) = &mut other.idle {
            idle.between = idle.before_first;
        }
        other
    };
    let mut merged = ProfileMerge::default();
    let first = CheckFacts::new(&profile, &check::rows());
    merged.add(&first);
    merged.add(&CheckFacts::new(&other, &check::rows()));
    CampaignFacts {
        plan: "rig-1a2b3c4d".to_owned(),
        messages: CampaignProgress {
            planned: 14,
            finished: 12,
            missing: 1,
            dead: vec![DeadLetter {
                message: "bench-api-eu-3".to_owned(),
                reason: "the worker ended".to_owned(),
            }],
            ..CampaignProgress::default()
        },
        outliers: vec![Outlier {
            worker: "w-7".to_owned(),
            far: 4,
            messages: 5,
            factor: 1.83,
        }],
        benches: vec![TargetBench {
            target: "api".to_owned(),
            label: "eu".to_owned(),
            run,
            tally: Tally::new(),
            facts: bench.facts,
        }],
        checks: vec![TargetChecks {
            target: "web".to_owned(),
            label: "eu".to_owned(),
            facts: merged.facts(),
            first: Some((check::run(), first)),
        }],
    }
}

#[test]
fn a_campaign_has_a_page_for_its_messages_and_for_each_target() {
    let facts = facts();
    let charts: Vec<Charts> = facts
        .benches
        .iter()
        .map(|one| Charts::new(&one.run, &one.tally, &one.facts, &Timeline::of_variants()))
        .collect();
    let mut pages = campaign(&facts, &charts);
    assert_eq!(pages.len(), 3);
    assert!(pages[1].subject.starts_with("api from eu: "));
    let bench = pages.remove(1);
    insta::assert_snapshot!(written::terminal(&pages));
    pages.insert(1, bench);
    pages.extend(first_checks(&facts));
    let (markdown, html) = written::files("fleet", &pages);
    for words in [
        "12 of 14 messages have a result.",
        "bench-api-eu-3",
        "1 of 2 profiles",
    ] {
        assert!(markdown.contains(words) && html.contains(words), "{words}");
    }
    assert!(html.contains("id=\"run4-limits\""));
}

#[test]
fn a_target_without_a_result_says_so() {
    let facts = ProfileMerge::default().facts();
    let page = profiles(&facts, "web from eu".to_owned());
    assert!(written::terminal(&[page]).contains("No check has a result."));
}
