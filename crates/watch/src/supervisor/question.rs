//! The name in a question to a name server (RFC 1035 section 4.1).

/// The longest question that is looked at, in bytes.
pub(super) const MAX_LEN: usize = 512;
const HEAD: usize = 12;
/// The longest name, in bytes as it is printed.
const MAX_NAME: usize = 253;

/// What a datagram asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Question {
    /// In lower case, without the final dot.
    pub(super) name: String,
    /// The type of record: 1 for IPv4 addresses, 28 for IPv6 ones.
    pub(super) kind: u16,
}

/// Reads a plain query with one question; `None` for anything else.
pub(super) fn parse(datagram: &[u8]) -> Option<Question> {
    let head: &[u8; HEAD] = datagram.first_chunk()?;
    let is_answer = head[2] & 0x80 != 0;
    let operation = head[2] >> 3 & 15;
    let questions = u16::from_be_bytes([head[4], head[5]]);
    if is_answer || operation != 0 || questions != 1 {
        return None;
    }
    let mut name = String::new();
    let mut rest = &datagram[HEAD..];
    loop {
        let (&len, after) = rest.split_first()?;
        if len == 0 {
            // type and class follow
            let kind = u16::from_be_bytes(*after.get(..4)?.first_chunk()?);
            return Some(Question { name, kind });
        }
        // a question has nothing before it that a compressed name could point to
        let label = after.get(..usize::from(len)).filter(|_| len < 64)?;
        if !name.is_empty() {
            name.push('.');
        }
        for byte in label {
            if !byte.is_ascii_graphic() {
                return None;
            }
            name.push(char::from(byte.to_ascii_lowercase()));
        }
        if name.len() > MAX_NAME {
            return None;
        }
        rest = &after[label.len()..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn question(name: &str) -> Vec<u8> {
        let mut bytes = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            bytes.push(label.len() as u8);
            bytes.extend_from_slice(label.as_bytes());
        }
        bytes.extend_from_slice(&[0, 0, 28, 0, 1]);
        bytes
    }

    #[test]
    fn a_question_tells_its_name() {
        let bytes = question("API.example.com");
        let asked = parse(&bytes).unwrap();
        assert_eq!((asked.name.as_str(), asked.kind), ("api.example.com", 28));
        for cut in 0..bytes.len() {
            assert_eq!(parse(&bytes[..cut]), None);
        }
        let mut answer = bytes.clone();
        answer[2] |= 0x80;
        assert_eq!(parse(&answer), None);
        assert_eq!(parse(&question("a b.example")), None);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            if let Some(asked) = parse(&bytes) {
                prop_assert!(asked.name.len() <= MAX_NAME);
            }
        }

        #[test]
        fn every_name_reads_back(name in "[a-z0-9-]{1,20}(\\.[a-z0-9-]{1,20}){0,5}") {
            let asked = parse(&question(&name)).map(|asked| asked.name);
            prop_assert_eq!(asked.as_deref(), Some(name.as_str()));
        }
    }
}
