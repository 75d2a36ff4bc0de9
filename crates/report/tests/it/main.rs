//! Pages as a person sees them, on wide and narrow paper and in a browser.

mod bench;
mod browser;
mod catalogue;
mod check;
mod chromium;
mod compare;
mod consumers;
mod drain;
mod fault;
mod fix;
mod fleet;
mod foreign_numbers;
mod lambda;
mod made;
mod model;
mod observed;
mod page;
mod remedies;
#[path = "../../../../fixtures/tests/skip.rs"]
mod skip;
mod written;
