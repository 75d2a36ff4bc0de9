//! Reads an expression from left to right, knowing at each step where it is.

use std::ops::Range;

use super::catalogue::{DocumentKind, Figure, Parameter, SELECTORS};
use super::parse_error::{
    ParseError, ParseErrorKind, unknown_metric, unknown_rule, unknown_selector, unknown_value,
};
use super::{Dimension, Op, Quantity, Requirement, Selector, Unit};

type Spanned = Range<usize>;

pub(super) fn parse(expression: &str) -> Result<Requirement, ParseError> {
    let fault = |span: Spanned, kind| ParseError::new(expression, span, kind);
    let (selectors, rest) = match end_of_selectors(expression) {
        Some(colon) => {
            let parts = split_unquoted(expression, 0..colon, ',');
            let read = parts
                .into_iter()
                .map(|span| parse_selector(expression, span));
            (read.collect::<Result<_, _>>()?, colon + 1)
        }
        None => (Vec::new(), 0),
    };

    let rest = trim(expression, rest..expression.len());
    let is_sign = |c: char| "<>=!".contains(c);
    let metric_span = leading(expression, rest.clone(), |c| {
        !is_sign(c) && !c.is_whitespace()
    });
    if metric_span.is_empty() {
        return Err(fault(metric_span, ParseErrorKind::NoMetric));
    }
    let name = &expression[metric_span.clone()];
    let figure =
        Figure::named(name).ok_or_else(|| fault(metric_span.clone(), unknown_metric(name)))?;

    let rest = trim(expression, metric_span.end..rest.end);
    let as_share = as_share(name, &expression[rest.clone()]);
    let (figure, name) = as_share.map_or((figure, name), |share| (share, share.name));
    let op_span = leading(expression, rest.clone(), is_sign);
    let written = &expression[op_span.clone()];
    let op = Op::ALL
        .iter()
        .find(|(_, sign)| *sign == written)
        .map(|(op, _)| *op);
    let op = op.ok_or_else(|| fault(op_span.clone(), ParseErrorKind::NotAnOperator))?;

    let rest = trim(expression, op_span.end..rest.end);
    let value = parse_quantity(expression, rest.clone(), name, figure.dimension)?;
    if let Some((_, share)) = SHARES.iter().find(|(count, _)| *count == name)
        && value.number > 0.0
        && value.number < 1.0
    {
        let kind = ParseErrorKind::ShareOfCount {
            metric: name.to_owned(),
            share,
            op: written.to_owned(),
            number: value.number,
        };
        return Err(fault(rest, kind));
    }
    Ok(Requirement {
        selectors,
        figure,
        name: name.to_owned(),
        op,
        value,
        allow_empty: false,
    })
}

/// Counts of which a share may be required, and the metric of the share: `failed < 0.1 %`.
const SHARES: [(&str, &str); 2] = [("failed", "failed-share"), ("reused", "reuse")];

/// The share that belongs to the count `name`, if the value is a percentage.
fn as_share(name: &str, rest: &str) -> Option<&'static Figure> {
    let (_, share) = SHARES.iter().find(|(count, _)| *count == name)?;
    rest.trim_end()
        .ends_with('%')
        .then(|| Figure::named(share))?
}

pub(super) fn check_for(
    requirement: &Requirement,
    document: DocumentKind,
    rules: impl Fn(DocumentKind) -> Vec<&'static str>,
) -> Result<(), ParseError> {
    let expression = requirement.to_string();
    // the printed form is our own, so that a name is found where it is printed
    let missing = |name: String, from: usize, elsewhere: Vec<DocumentKind>| {
        let start = expression[from..].find(&name).map_or(from, |at| from + at);
        let span = start..(start + name.len()).min(expression.len());
        Err(ParseError::new(
            &expression,
            span,
            ParseErrorKind::NotInDocument {
                name,
                document,
                elsewhere,
            },
        ))
    };
    let mut from = 0;
    for selector in &requirement.selectors {
        if !selector.entry.documents.contains(&document) {
            let elsewhere = selector.entry.documents.to_vec();
            return missing(selector.entry.key.to_owned(), from, elsewhere);
        }
        from += selector.to_string().len() + 1;
    }
    let Requirement { figure, name, .. } = requirement;
    let id = match figure.parameter {
        Some(Parameter::Rule) => name.strip_prefix(figure.stem()),
        _ => None,
    };
    let applies = |one: &DocumentKind| id.is_none_or(|id| rules(*one).contains(&id));
    let documents = figure.documents.iter().copied();
    let elsewhere: Vec<DocumentKind> = documents.filter(applies).collect();
    match id {
        _ if elsewhere.contains(&document) => Ok(()),
        Some(id) if elsewhere.is_empty() => {
            let start = expression[from..].find(id).map_or(from, |at| from + at);
            let unknown = unknown_rule(id, document, &rules(document));
            Err(ParseError::new(
                &expression,
                start..start + id.len(),
                unknown,
            ))
        }
        _ => missing(name.clone(), from, elsewhere),
    }
}

/// Whether a selector's value needs no quotes.
pub(super) fn is_bare(value: &str) -> bool {
    // a colon may stay as it is: the last one ends the selectors, and a printed requirement always
    // has that one
    !value.is_empty() && value.trim() == value && !value.contains([',', '"', '\\'])
}

fn parse_selector(expression: &str, span: Spanned) -> Result<Selector, ParseError> {
    let span = trim(expression, span);
    let not_a_selector = || ParseError::new(expression, span.clone(), ParseErrorKind::NotASelector);
    if let Some(fixed) = parse_fixed(expression, span.clone()) {
        return fixed;
    }
    let equals = expression[span.clone()]
        .find('=')
        .ok_or_else(not_a_selector)?;
    let key_span = trim(expression, span.start..span.start + equals);
    let key = &expression[key_span.clone()];
    let entry = SELECTORS
        .iter()
        .find(|entry| entry.key == key)
        .ok_or_else(|| ParseError::new(expression, key_span, unknown_selector(key)))?;
    let written = expression[span.start + equals + 1..span.end].trim();
    let value = match written.strip_prefix('"') {
        Some(quoted) => unquote(quoted).ok_or_else(not_a_selector)?,
        None if is_bare(written) => written.to_owned(),
        None => return Err(not_a_selector()),
    };
    Ok(Selector { entry, value })
}

/// A selector whose values are fixed: `key`, `key.value`; `key=value` is read, too. `None` where
/// the key is another one.
fn parse_fixed(expression: &str, span: Spanned) -> Option<Result<Selector, ParseError>> {
    let text = &expression[span.clone()];
    let end = text.find(['.', '=']).unwrap_or(text.len());
    let key = text[..end].trim();
    let mut fixed = SELECTORS.iter().filter(|entry| !entry.values.is_empty());
    let entry = fixed.find(|entry| entry.key == key)?;
    let value_span = trim(expression, (span.start + end + 1).min(span.end)..span.end);
    let value = expression[value_span.clone()].trim_matches('"');
    let is_known = entry.values.contains(&value) || (value.is_empty() && end == text.len());
    Some(if is_known {
        let value = value.to_owned();
        Ok(Selector { entry, value })
    } else {
        let kind = unknown_value(key, value, entry.values);
        Err(ParseError::new(expression, value_span, kind))
    })
}

/// What stands before a closing quote that is the last character.
fn unquote(quoted: &str) -> Option<String> {
    let mut value = String::new();
    let mut chars = quoted.chars();
    loop {
        match chars.next()? {
            '"' => return chars.as_str().is_empty().then_some(value),
            '\\' => value.push(chars.next().filter(|c| matches!(c, '"' | '\\'))?),
            other => value.push(other),
        }
    }
}

fn parse_quantity(
    expression: &str,
    span: Spanned,
    metric: &str,
    dimension: Dimension,
) -> Result<Quantity, ParseError> {
    let refused = |span, kind| ParseError::new(expression, span, kind);
    let number_span = leading(expression, span.clone(), |c| {
        c.is_ascii_digit() || c == '.' || c == '-'
    });
    let number: f64 = expression[number_span.clone()]
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite())
        .ok_or_else(|| {
            refused(
                number_span.clone(),
                ParseErrorKind::NotANumber { dimension },
            )
        })?;
    let unit_span = trim(expression, number_span.end..span.end);
    let written = &expression[unit_span.clone()];
    let fitting = Unit::named(written).filter(|unit| unit.fits(dimension, number));
    let Some(unit) = fitting else {
        let metric = metric.to_owned();
        if written.is_empty() {
            let kind = ParseErrorKind::NoUnit { metric, dimension };
            return Err(refused(number_span, kind));
        }
        let printable = written.chars().filter(|c| !c.is_control());
        let kind = ParseErrorKind::WrongUnit {
            unit: printable.take(20).collect(),
            metric,
            dimension,
        };
        return Err(refused(unit_span, kind));
    };
    if dimension == Dimension::Share && unit == Unit::Plain && number > 1.0 {
        return Err(refused(number_span, ParseErrorKind::ShareAboveOne(number)));
    }
    let quantity = Quantity { number, unit };
    match quantity.base().is_finite() {
        true => Ok(quantity),
        false => Err(refused(
            number_span,
            ParseErrorKind::NotANumber { dimension },
        )),
    }
}

/// The last colon outside quotes.
fn end_of_selectors(expression: &str) -> Option<usize> {
    unquoted(expression, 0..expression.len())
        .filter(|(_, c)| *c == ':')
        .last()
        .map(|(at, _)| at)
}

fn split_unquoted(expression: &str, span: Spanned, separator: char) -> Vec<Spanned> {
    let mut start = span.start;
    let mut parts = Vec::new();
    for (at, c) in unquoted(expression, span.clone()) {
        if c == separator {
            parts.push(start..at);
            start = at + separator.len_utf8();
        }
    }
    parts.push(start..span.end);
    parts
}

/// The characters outside quotes, with their places in the whole expression.
fn unquoted(expression: &str, span: Spanned) -> impl Iterator<Item = (usize, char)> + '_ {
    let mut quoted = false;
    let mut escaped = false;
    expression[span.clone()]
        .char_indices()
        .filter_map(move |(at, c)| {
            let outside = !quoted && c != '"';
            match c {
                _ if escaped => escaped = false,
                '\\' if quoted => escaped = true,
                '"' => quoted = !quoted,
                _ => {}
            }
            outside.then_some((span.start + at, c))
        })
}

/// The part of the span up to the first character that is not `wanted`.
fn leading(expression: &str, span: Spanned, wanted: impl Fn(char) -> bool) -> Spanned {
    let text = &expression[span.clone()];
    let length = text.find(|c| !wanted(c)).unwrap_or(text.len());
    span.start..span.start + length
}

fn trim(expression: &str, span: Spanned) -> Spanned {
    let text = &expression[span.clone()];
    let start = span.end - text.trim_start().len();
    start..start + expression[start..span.end].trim_end().len()
}
