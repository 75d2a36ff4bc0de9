//! Pages as a person sees them, on wide and narrow paper and in a browser.

mod bench;
mod browser;
mod catalogue;
mod check;
mod chromium;
mod compare;
mod made;
mod observed;
mod page;
