//! The Parquet form of exchanges: one flat table; docs/reference/fleet.md has the schema.

use super::RowError;
use crate::message::Message;
use intact_ledger::{Exchange, Outcome, Phase};
use parquet::basic::Compression;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::fs::File;
use std::sync::Arc;

/// The schema. Times are nanoseconds of the worker's monotonic clock, from the start of the
/// message's run.
pub(crate) const SCHEMA: &str = "message exchange {
  required binary message (STRING);
  required binary target (STRING);
  required int32 repetition;
  required int32 slice;
  required int64 id;
  required boolean warmup;
  required int64 at_ns;
  required int64 latency_ns;
  optional int64 connection;
  optional int64 ordinal;
  optional binary reuse (STRING);
  optional int32 status;
  required binary outcome (STRING);
  optional int64 dns_ns;
  optional int64 connect_ns;
  optional int64 ssl_ns;
  optional int64 blocked_ns;
  optional int64 send_ns;
  optional int64 wait_ns;
  optional int64 headers_to_body_ns;
  optional int64 receive_ns;
  optional int64 client_delay_ns;
  required int64 sent_bytes;
  required int64 head_bytes;
  required int64 body_bytes;
}";
/// Rows per row group, which are held in memory.
const GROUP: usize = 65_536;

/// Collects exchanges and writes them in row groups.
pub(super) struct Columns {
    writer: SerializedFileWriter<File>,
    message: String,
    target: String,
    repetition: i32,
    slice: i32,
    held: Vec<Exchange>,
}

impl Columns {
    pub(super) fn new(message: &Message, file: File) -> Result<Columns, RowError> {
        let schema = Arc::new(parse_message_type(SCHEMA)?);
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(Default::default()))
            .build();
        Ok(Columns {
            writer: SerializedFileWriter::new(file, schema, Arc::new(properties))?,
            message: message.id.clone(),
            target: message.target.clone(),
            repetition: message.repetition as i32,
            slice: message.slice as i32,
            held: Vec::new(),
        })
    }

    pub(super) fn add(&mut self, exchange: &Exchange) -> Result<(), RowError> {
        self.held.push(exchange.clone());
        if self.held.len() >= GROUP {
            self.write_group()?;
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<File, RowError> {
        self.write_group()?;
        Ok(self.writer.into_inner()?)
    }

    fn write_group(&mut self) -> Result<(), RowError> {
        let held = std::mem::take(&mut self.held);
        if held.is_empty() {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        let mut at = 0;
        while let Some(mut column) = group.next_column()? {
            let name = column_name(at);
            let value = |exchange: &Exchange| match name {
                "message" => Value::Text(Some(self.message.clone())),
                "target" => Value::Text(Some(self.target.clone())),
                "repetition" => Value::Int(Some(self.repetition)),
                "slice" => Value::Int(Some(self.slice)),
                name => of(exchange, name),
            };
            write_column(column.untyped(), &held, value)?;
            column.close()?;
            at += 1;
        }
        group.close()?;
        Ok(())
    }
}

/// One cell; `None` is null.
enum Value {
    Text(Option<String>),
    Int(Option<i32>),
    Long(Option<i64>),
    Truth(Option<bool>),
}

/// The name of a column in the schema.
fn column_name(at: usize) -> &'static str {
    SCHEMA
        .lines()
        .skip(1)
        .nth(at)
        .and_then(|line| line.split_whitespace().nth(2))
        .map_or("", |name| name.trim_end_matches(';'))
}

fn of(exchange: &Exchange, name: &str) -> Value {
    let long = |value: u64| Value::Long(Some(i64::try_from(value).unwrap_or(i64::MAX)));
    let span = |phase| {
        Value::Long(
            exchange
                .spans
                .of(phase)
                .map(|span| i64::try_from(span.nanos()).unwrap_or(i64::MAX)),
        )
    };
    let bytes = &exchange.bytes;
    match name {
        "id" => long(exchange.id),
        "warmup" => Value::Truth(Some(exchange.warmup)),
        "at_ns" => long(exchange.at.0),
        "latency_ns" => long(exchange.latency()),
        "connection" => Value::Long(exchange.connection.map(|id| id.0 as i64)),
        "ordinal" => Value::Long(exchange.ordinal.map(i64::from)),
        "reuse" => Value::Text(exchange.reuse.map(|reuse| reuse.as_str().to_owned())),
        "status" => Value::Int(exchange.status.map(i32::from)),
        "outcome" => Value::Text(Some(match exchange.outcome {
            Outcome::Ok => "ok".to_owned(),
            Outcome::Failed(kind) => kind.id().to_owned(),
        })),
        "dns_ns" => span(Phase::Dns),
        "connect_ns" => span(Phase::Connect),
        "ssl_ns" => span(Phase::Ssl),
        "blocked_ns" => span(Phase::Blocked),
        "send_ns" => span(Phase::Send),
        "wait_ns" => span(Phase::Wait),
        "headers_to_body_ns" => span(Phase::HeadersToBody),
        "receive_ns" => span(Phase::Receive),
        "client_delay_ns" => Value::Long(exchange.client_delay.map(|span| span.nanos() as i64)),
        "sent_bytes" => long(bytes.request_head + bytes.request_body),
        "head_bytes" => long(bytes.head),
        _ => long(bytes.body),
    }
}

/// Writes one column of a row group.
fn write_column(
    column: &mut ColumnWriter<'_>,
    held: &[Exchange],
    value: impl Fn(&Exchange) -> Value,
) -> Result<(), ParquetError> {
    let mut present = Vec::with_capacity(held.len());
    macro_rules! fill {
        ($writer:expr, $kind:path, $into:expr) => {{
            let mut values = Vec::with_capacity(held.len());
            for exchange in held {
                let cell = match value(exchange) {
                    $kind(cell) => cell,
                    // schema and `of` disagree; a test below checks that
                    _ => None,
                };
                present.push(i16::from(cell.is_some()));
                values.extend(cell.map($into));
            }
            $writer.write_batch(&values, Some(&present), None)?;
        }};
    }
    match column {
        ColumnWriter::ByteArrayColumnWriter(writer) => {
            fill!(writer, Value::Text, |text: String| ByteArray::from(
                text.into_bytes()
            ));
        }
        ColumnWriter::Int32ColumnWriter(writer) => fill!(writer, Value::Int, |int| int),
        ColumnWriter::Int64ColumnWriter(writer) => fill!(writer, Value::Long, |long| long),
        ColumnWriter::BoolColumnWriter(writer) => fill!(writer, Value::Truth, |truth| truth),
        _ => {
            return Err(ParquetError::General(
                "the schema has a type that nothing writes".to_owned(),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../../../../docs/reference/fleet.md");

    /// Name, type and nullability of each column in the schema.
    fn columns() -> Vec<(String, String, bool)> {
        let schema = parse_message_type(SCHEMA).unwrap();
        let columns = schema.get_fields().iter();
        columns
            .map(|column| {
                let kind = match column.get_physical_type() {
                    parquet::basic::Type::BYTE_ARRAY => "string".to_owned(),
                    other => other.to_string().to_ascii_lowercase(),
                };
                (column.name().to_owned(), kind, column.is_optional())
            })
            .collect()
    }

    #[test]
    fn the_page_names_every_column_in_order_with_its_type() {
        let table = PAGE.split("| column | type | meaning |").nth(1).unwrap();
        let mut written = Vec::new();
        for line in table
            .lines()
            .skip(2)
            .take_while(|line| line.starts_with('|'))
        {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let (kind, may_be_null) = match cells[2].strip_suffix(", may be null") {
                Some(kind) => (kind, true),
                None => (cells[2], false),
            };
            for name in cells[1].split(", ") {
                written.push((
                    name.trim_matches('`').to_owned(),
                    kind.to_owned(),
                    may_be_null,
                ));
            }
        }
        assert_eq!(written, columns());
    }

    #[test]
    fn the_table_for_athena_has_the_same_columns() {
        let table = PAGE
            .split("CREATE EXTERNAL TABLE exchanges (")
            .nth(1)
            .and_then(|rest| rest.split(')').next())
            .unwrap();
        let documented: Vec<Vec<&str>> = table
            .split(',')
            .map(|column| column.split_whitespace().collect())
            .collect();
        let wanted: Vec<(String, &str)> = columns()
            .into_iter()
            .map(|(name, kind, _)| {
                let kind = match &*kind {
                    "int32" => "int",
                    "int64" => "bigint",
                    "boolean" => "boolean",
                    _ => "string",
                };
                (name, kind)
            })
            .collect();
        assert_eq!(documented.len(), wanted.len());
        for (column, (name, kind)) in documented.iter().zip(&wanted) {
            assert_eq!(column[..], [name, *kind]);
        }
    }

    #[test]
    fn every_column_has_a_writer_of_its_type() {
        let exchange = Exchange::new(1, intact_ledger::Nanos(0));
        for (name, kind, _) in columns() {
            let ours = ["message", "target", "repetition", "slice"];
            if ours.contains(&&*name) {
                continue;
            }
            let fits = matches!(
                (of(&exchange, &name), &*kind),
                (Value::Text(_), "string")
                    | (Value::Int(_), "int32")
                    | (Value::Long(_), "int64")
                    | (Value::Truth(_), "boolean")
            );
            assert!(fits, "{name}: {kind}");
        }
    }
}
