//! The runs of a page in one HAR. Browsertime and WebPageTest load a page several times, each time
//! in a new browser, and write all runs to one file. Must not look at times or addresses.

use std::collections::HashMap;

/// What Browsertime appends to the id of a page that an earlier run has, once per run.
const AGAIN: &str = "-1";
/// Limit of pages that are distinguished; later ones count to the first run.
const MOST_PAGES: usize = 65_536;

/// The run of each page so far.
#[derive(Debug, Default)]
pub(super) struct PageRuns {
    /// By the page's id.
    pages: HashMap<Box<str>, u32>,
    /// The runs of WebPageTest, by run and view.
    views: HashMap<(u32, u32), u32>,
}

impl PageRuns {
    /// The run of the page with this id, from 0.
    pub(super) fn of(&mut self, page: &str) -> u32 {
        if let Some(run) = self.pages.get(page) {
            return *run;
        }
        let run = match view(page) {
            Some(view) => {
                let next = self.views.len() as u32;
                *self.views.entry(view).or_insert(next)
            }
            None => self.repetition(page),
        };
        if self.pages.len() < MOST_PAGES {
            self.pages.insert(page.into(), run);
        }
        run
    }

    /// How often the id was taken before, according to what Browsertime appended.
    fn repetition(&self, page: &str) -> u32 {
        let base = page.trim_end_matches(AGAIN);
        match self.pages.contains_key(base) {
            true => ((page.len() - base.len()) / AGAIN.len()) as u32,
            false => 0,
        }
    }
}

/// Run and view of a page of WebPageTest: `page_RUN_CACHED`, perhaps with `_STEP`. The repeat view
/// has a browser of its own; the steps of a view share one.
fn view(page: &str) -> Option<(u32, u32)> {
    let mut parts = page.strip_prefix("page_")?.split('_');
    let run = parts.next()?.parse().ok()?;
    let cached = parts.next()?.parse().ok()?;
    let step = parts.next().map_or(Ok(0), str::parse::<u32>);
    (cached <= 1 && step.is_ok() && parts.next().is_none()).then_some((run, cached))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(pages: &[&str]) -> Vec<u32> {
        let mut known = PageRuns::default();
        pages.iter().map(|page| known.of(page)).collect()
    }

    #[test]
    fn browsertime_appends_to_the_ids_of_later_runs() {
        let pages = ["page_1", "page_2", "page_1-1", "page_2-1", "page_1-1-1"];
        assert_eq!(runs(&pages), [0, 0, 1, 1, 2]);
        assert_eq!(runs(&["page_1", "page_1-1", "page_1"]), [0, 1, 0]);
    }

    #[test]
    fn webpagetest_names_run_view_and_step() {
        let pages = ["page_1_0_1", "page_1_0_2", "page_1_1_1", "page_2_0_1"];
        assert_eq!(runs(&pages), [0, 0, 1, 2]);
        assert_eq!(runs(&["page_1_0", "page_2_0"]), [0, 1]);
    }

    #[test]
    fn pages_of_one_browser_are_one_run() {
        assert_eq!(runs(&["page_1", "page_2", "page_3"]), [0, 0, 0]);
        // no page has the id without the appendix
        assert_eq!(runs(&["shop-1", "shop-2"]), [0, 0]);
        assert_eq!(runs(&["page_1_2", "page_2_2"]), [0, 0]);
    }

    proptest::proptest! {
        #[test]
        fn no_id_is_trouble(pages in proptest::collection::vec("(page_)?[0-9_-]{0,12}.{0,3}", 0..20)) {
            let mut known = PageRuns::default();
            for page in &pages {
                let run = known.of(page);
                assert_eq!(known.of(page), run);
            }
        }
    }
}
