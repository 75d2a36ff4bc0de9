//! Pages as a browser shows them, at three widths, light and dark. Screenshots are left in the
//! folder that cargo gives tests (`target/tmp/pages`), for a person to look at.

use crate::check;
use crate::chromium::Chromium;
use crate::compare;
use crate::made;
use crate::observed::{observed, with_page};
use intact_findings::{Document, Parts};
use intact_report::documents;
use intact_servers::check::CheckFacts;
use serde_json::Value;
use std::path::{Path, PathBuf};

const WIDTHS: [u32; 3] = [360, 800, 1400];

/// Puts a page into the folder of pages.
fn page(name: &str, html: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join(name);
    std::fs::write(&file, html).unwrap();
    file
}

/// Nothing wider than the screen, one drawing of each picture, its text inside of it and never on
/// other text of its kind.
const LAYOUT: &str = r#"(() => {
  const wrong = [];
  const wide = document.documentElement.scrollWidth;
  if (wide > innerWidth) wrong.push(`the page is ${wide} wide`);
  const seen = (it) => it.getBoundingClientRect().width > 0;
  for (const figure of document.querySelectorAll('figure')) {
    const shown = [...figure.querySelectorAll('svg.picture')].filter(seen);
    if (shown.length !== 1) { wrong.push(`${figure.id} shows ${shown.length} drawings`); continue; }
    const edge = shown[0].getBoundingClientRect();
    const texts = [...shown[0].querySelectorAll('text')];
    for (const text of texts) {
      const box = text.getBoundingClientRect();
      if (box.left < edge.left - 2 || box.right > edge.right + 2 || box.top < edge.top - 2 || box.bottom > edge.bottom + 2)
        wrong.push(`${figure.id}: "${text.textContent}" is outside by ${[edge.left - box.left, box.right - edge.right, edge.top - box.top, box.bottom - edge.bottom].map(Math.round)}`);
      if (parseFloat(getComputedStyle(text).fontSize) * edge.width / shown[0].viewBox.baseVal.width < 10)
        wrong.push(`${figure.id}: "${text.textContent}" is too small`);
    }
    for (const [nth, one] of texts.entries()) for (const other of texts.slice(nth + 1)) {
      const a = one.getBoundingClientRect(), b = other.getBoundingClientRect();
      const over = Math.min(a.right, b.right) - Math.max(a.left, b.left), deep = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (over > 1 && deep > 5) wrong.push(`${figure.id}: "${one.textContent}" lies on "${other.textContent}"`);
    }
  }
  return wrong;
})()"#;

/// What a person who cannot see the pictures, or has no mouse, needs.
const ACCESS: &str = r#"(() => {
  const wrong = [];
  const ids = [...document.querySelectorAll('[id]')].map((it) => it.id);
  if (new Set(ids).size !== ids.length) wrong.push('ids are not unique');
  for (const link of document.querySelectorAll('a[href^="\#"]'))
    if (!document.getElementById(link.getAttribute('href').slice(1))) wrong.push(`${link.getAttribute('href')} leads nowhere`);
  for (const svg of document.querySelectorAll('svg.picture'))
    if (!svg.querySelector(':scope > title')?.textContent || !svg.querySelector(':scope > desc')?.textContent) wrong.push('a picture without words');
  for (const table of document.querySelectorAll('table')) {
    if (!document.getElementById(table.getAttribute('aria-labelledby'))?.textContent) wrong.push('a table without a caption');
    if (table.parentElement.tabIndex !== 0) wrong.push('a table that no key scrolls');
  }
  if (!document.documentElement.lang || !document.title) wrong.push('no language or title');
  if (document.querySelectorAll('h1').length !== 1) wrong.push('not one first heading');
  return wrong;
})()"#;

/// Text that stands out too little from what is behind it (WCAG 2.2, 1.4.3: 4.5 to 1).
const CONTRAST: &str = r#"(() => {
  const channels = (colour) => (colour.match(/[\d.]+/g) || []).map(Number);
  const light = (colour) => {
    const [r, g, b] = channels(colour).slice(0, 3).map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (it) => {
    for (; it; it = it.parentElement) {
      const colour = getComputedStyle(it).backgroundColor, parts = channels(colour);
      if (parts.length === 3 || parts[3] === 1) return colour;
    }
    return 'rgb(255, 255, 255)';
  };
  const wrong = new Set();
  for (const it of document.querySelectorAll('body *')) {
    if (![...it.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim())) continue;
    const box = it.getBoundingClientRect();
    if (!box.width || it.closest('script, style, title, desc, .inside') || it.classList.contains('inside')) continue;
    const style = getComputedStyle(it);
    const ink = it instanceof SVGElement ? style.fill : style.color;
    const [a, b] = [light(ink), light(behind(it))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) wrong.add(`${it.className.baseVal ?? it.className} "${it.textContent.slice(0, 30)}": ${ratio.toFixed(2)}`);
  }
  return [...wrong];
})()"#;

fn nothing(found: &Value, what: &str) {
    assert_eq!(found.as_array().map(Vec::len), Some(0), "{what}: {found:#}");
}

/// Opens a page at all widths in both schemes, takes a screenshot of each and holds it to what a
/// person needs.
fn look_at(browser: &mut Chromium, file: &Path) {
    let name = file.file_stem().unwrap().to_str().unwrap();
    for scheme in ["light", "dark"] {
        for width in WIDTHS {
            browser.open(file, width, scheme);
            browser.picture(&file.with_file_name(format!("{name}-{width}-{scheme}.png")));
            let place = format!("{width} px, {scheme}");
            nothing(&browser.evaluate(LAYOUT), &place);
            nothing(&browser.evaluate(ACCESS), &place);
            nothing(&browser.evaluate(CONTRAST), &place);
        }
    }
}

#[test]
fn the_page_of_a_bench_fits_every_screen_and_can_be_clicked_through() {
    let Some(mut browser) = Chromium::start("the page of a bench in a browser") else {
        return;
    };
    let html = made::html(&made::bench(400, ""));
    let file = page("bench.html", &html);
    look_at(&mut browser, &file);
    let names = "[...document.querySelector('table').tBodies[0].rows].map((row) => row.cells[0].textContent)";
    let before = browser.evaluate(names);
    let head = "table thead th:nth-child(2) button";
    browser.click(head);
    browser.click(head);
    let state = "document.querySelector('table thead th:nth-child(2)').getAttribute('aria-sort')";
    assert_eq!(browser.evaluate(state), "descending");
    // a third time, by keyboard: back to the order in which it was written
    browser.evaluate(&format!("document.querySelector('{head}').focus()"));
    browser.press("Enter");
    assert_eq!(browser.evaluate(state), Value::Null);
    assert_eq!(browser.evaluate(names), before);

    let kept = browser.evaluate(
        "(() => { const link = document.querySelector('a[download=\"bench.json\"]'); return JSON.parse(atob(link.href.split(',')[1])).schema; })()",
    );
    assert_eq!(kept, "intact.bench/1");
    browser.click("nav a[href$='method']");
    assert_eq!(browser.evaluate("location.hash"), "#method");
    assert!(browser.complaints.is_empty(), "{:#?}", browser.complaints);
}

#[test]
fn the_page_of_an_observed_run_fits_every_screen() {
    let Some(mut browser) = Chromium::start("the page of an observed run in a browser") else {
        return;
    };
    let (run, seen) = observed();
    let html = with_page(&run, &seen, |page| {
        intact_report::html::write(&[page]).unwrap()
    });
    let file = page("observed.html", &html);
    look_at(&mut browser, &file);
    for figure in [
        "waste",
        "latency",
        "waterfall",
        "latency-over-time",
        "gaps",
        "timeline",
    ] {
        assert!(
            html.contains(&format!("<figure id=\"{figure}-chart\"")),
            "{figure}"
        );
    }
    assert!(browser.complaints.is_empty(), "{:#?}", browser.complaints);
}

#[test]
fn the_page_of_a_comparison_fits_every_screen() {
    let Some(mut browser) = Chromium::start("the page of a comparison in a browser") else {
        return;
    };
    let document = compare::made();
    let html = intact_report::html::write(&[documents::page(&document)]).unwrap();
    let file = page("compare.html", &html);
    look_at(&mut browser, &file);
    assert!(browser.complaints.is_empty(), "{:#?}", browser.complaints);
}

#[test]
fn the_page_of_a_check_fits_every_screen() {
    let Some(mut browser) = Chromium::start("the page of a check in a browser") else {
        return;
    };
    let facts = CheckFacts::new(&check::profile(), &check::rows());
    let document = Document::new(check::run(), Parts::Check(Box::new(facts)));
    let html = intact_report::html::write(&[documents::page(&document)]).unwrap();
    for picture in ["waterfall", "handshakes"] {
        assert!(
            html.contains(&format!("<figure id=\"{picture}-chart\"")),
            "{picture}"
        );
    }
    let file = page("check.html", &html);
    look_at(&mut browser, &file);
    assert!(browser.complaints.is_empty(), "{:#?}", browser.complaints);
}

#[test]
fn what_a_server_said_does_nothing_in_a_browser() {
    let Some(mut browser) = Chromium::start("hostile text in a browser") else {
        return;
    };
    let hostile = "</title></style></script><script>window.harmed=1</script><img src=x onerror=window.harmed=1>\" onload=\"window.harmed=1\u{202e}";
    let html = made::html(&made::bench(50, hostile));
    let file = page("hostile.html", &html);
    browser.open(&file, 800, "light");
    assert_eq!(browser.evaluate("window.harmed ?? 0"), 0);
    assert_eq!(
        browser.evaluate(
            "document.querySelectorAll('script').length + document.querySelectorAll('img').length"
        ),
        1
    );
    assert_eq!(
        browser.evaluate("document.querySelector('.subject').textContent.includes('<img src=x')"),
        true
    );
    assert!(browser.complaints.is_empty(), "{:#?}", browser.complaints);
}
