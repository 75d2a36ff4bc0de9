//! Ways to split bytes.

/// The bytes, cut at these places modulo their length.
pub(crate) fn cut<'a>(bytes: &'a [u8], places: &[usize]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = places
        .iter()
        .map(|place| place % (bytes.len() + 1))
        .collect();
    places.sort_unstable();
    places.push(bytes.len());
    let mut from = 0;
    places
        .into_iter()
        .map(|to| &bytes[std::mem::replace(&mut from, to)..to])
        .collect()
}
