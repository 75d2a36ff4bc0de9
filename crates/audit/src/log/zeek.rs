//! Zeek's `http.log` as it is written by default: columns between tabs, named in a head. (As JSON it is read by its names.)

use super::line::{Field, Line};
use std::borrow::Cow;

/// The columns of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Columns(Vec<Field>);

impl Columns {
    /// Reads the head of a file; `None` where it has none, or is another of Zeek's logs.
    pub(super) fn new(text: &str) -> Option<Columns> {
        if !text.starts_with("#separator \\x09") {
            return None;
        }
        let names = text
            .lines()
            .find_map(|line| line.strip_prefix("#fields\t"))?;
        let fields: Vec<Field> = names.split('\t').map(Field::named).collect();
        let has = |wanted: Field| fields.contains(&wanted);
        (has(Field::Method) && has(Field::Connection)).then_some(Columns(fields))
    }

    /// Takes a line apart.
    pub(super) fn read<'a>(&self, text: &'a str) -> Option<Line<'a>> {
        let mut line = Line::default();
        let mut seen = 0;
        for (field, value) in self.0.iter().zip(text.split('\t')) {
            seen += 1;
            if value != "(empty)" {
                line.set(*field, Cow::Borrowed(value));
            }
        }
        (seen == self.0.len()).then_some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "#separator \\x09\n#path\thttp\n#fields\tts\tuid\tid.orig_h\tid.orig_p\tid.resp_h\tid.resp_p\ttrans_depth\tmethod\thost\turi\tversion\tstatus_code\n";

    #[test]
    fn columns_are_named_by_the_head() {
        let columns = Columns::new(HEAD).unwrap();
        let line = columns
            .read("1389719059.311687\tCGLPPc35OzDQij1XX8\t141.142.228.5\t57862\t54.243.88.146\t80\t2\tPOST\thttpbin.org\t/post\t1.1\t200")
            .unwrap();
        assert_eq!(line.connection.as_deref(), Some("CGLPPc35OzDQij1XX8"));
        assert_eq!(
            (line.nth, line.port, line.status),
            (Some(2), Some(57862), Some(200))
        );
        assert_eq!(line.end.unwrap().nanos, 1_389_719_059_311_687_000);
        assert_eq!(columns.read("one\ttwo"), None);
    }

    #[test]
    fn other_logs_of_zeek_are_not_taken_for_requests() {
        assert_eq!(
            Columns::new("#separator \\x09\n#fields\tts\tuid\tproto\n"),
            None
        );
        assert_eq!(Columns::new("ts\tuid\tmethod\n"), None);
    }
}
