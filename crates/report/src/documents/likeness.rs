//! The section about a test and production: do both use connections alike?

use super::common::each_part;
use crate::page::*;
use intact_experiments::likeness::{Alikeness, Likeness};

/// How tests use connections, compared with production.
pub(super) fn section(like: Option<&Likeness>) -> Option<Section> {
    let like = like?;
    let rows = each_part(&like.tests, |test| &test.aspects);
    let table = match like.tests.as_slice() {
        [_] => Rows::of(&rows),
        _ => Rows::of(&rows).column("test", |row| &row.0.behaviour.name),
    };
    let table = table
        .column("aspect", |row| row.1.aspect.words())
        .column("of the test", |row| row.1.test.as_ref())
        .column("of production", |row| row.1.production.as_ref())
        .column("result", |row| match row.1.result {
            Alikeness::Alike => "alike",
            Alikeness::Differs => "differs",
            Alikeness::Unknown => "unknown",
        })
        .about("unknown: one side does not show it")
        .table();
    let title = text!("Like production ({})?", &like.production.name);
    let words = "A test whose connections are used otherwise measures other setups, other queues and another share of requests that wait for both.";
    Some(Section::new("like", title).summary(table.note(Text::prose(words))))
}
