//! The Parquet form of exchanges: one flat table; docs/reference/fleet.md has the schema.
//!
//! A column is one row of [`columns`]: whether it may be null, its type, its name, its value.

use super::RowError;
use crate::message::Message;
use intact_ledger::{Exchange, Phase, Reuse};
use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::TypePtr;
use std::fs::File;
use std::sync::Arc;

/// The value of a row in a column of each type; `None` is null.
enum Value {
    Text(fn(&Message, &Exchange) -> Option<String>),
    Int(fn(&Message, &Exchange) -> Option<u32>),
    Long(fn(&Message, &Exchange) -> Option<u64>),
    Truth(fn(&Message, &Exchange) -> Option<bool>),
}

/// A column: `required` or `optional`, its name and its values.
struct Column {
    repetition: &'static str,
    name: &'static str,
    value: Value,
}

macro_rules! columns {
    ($($repetition:ident $kind:ident $name:literal = $value:expr;)*) => {
        const COLUMNS: &[Column] = &[$(Column {
            repetition: stringify!($repetition),
            name: $name,
            value: Value::$kind($value),
        },)*];
    };
}

// times are nanoseconds of the worker's monotonic clock, from the start of the message's run
columns! {
    required Text "message" = |message, _| Some(message.id.clone());
    required Text "target" = |message, _| Some(message.target.clone());
    required Int "repetition" = |message, _| Some(message.repetition);
    required Int "slice" = |message, _| Some(message.slice);
    required Long "id" = |_, one| Some(one.id);
    required Truth "warmup" = |_, one| Some(one.warmup);
    required Long "at_ns" = |_, one| Some(one.at.0);
    required Long "latency_ns" = |_, one| Some(one.latency());
    optional Long "connection" = |_, one| one.connection.map(|id| id.0);
    optional Long "ordinal" = |_, one| one.ordinal.map(u64::from);
    optional Text "reuse" = |_, one| one.reuse.map(Reuse::as_str).map(str::to_owned);
    optional Int "status" = |_, one| one.status.map(u32::from);
    required Text "outcome" = |_, one| Some(one.outcome.id().to_owned());
    optional Long "dns_ns" = |_, one| phase(one, Phase::Dns);
    optional Long "connect_ns" = |_, one| phase(one, Phase::Connect);
    optional Long "ssl_ns" = |_, one| phase(one, Phase::Ssl);
    optional Long "blocked_ns" = |_, one| phase(one, Phase::Blocked);
    optional Long "send_ns" = |_, one| phase(one, Phase::Send);
    optional Long "wait_ns" = |_, one| phase(one, Phase::Wait);
    optional Long "headers_to_body_ns" = |_, one| phase(one, Phase::HeadersToBody);
    optional Long "receive_ns" = |_, one| phase(one, Phase::Receive);
    optional Long "client_delay_ns" = |_, one| one.client_delay.map(|span| span.nanos());
    required Long "sent_bytes" = |_, one| Some(one.bytes.request_head + one.bytes.request_body);
    required Long "head_bytes" = |_, one| Some(one.bytes.head);
    required Long "body_bytes" = |_, one| Some(one.bytes.body);
}

fn phase(exchange: &Exchange, phase: Phase) -> Option<u64> {
    exchange.spans.of(phase).map(|span| span.nanos())
}

/// The schema of the file.
fn schema() -> Result<TypePtr, ParquetError> {
    let fields = COLUMNS.iter().map(|column| {
        let (kind, annotation) = match column.value {
            Value::Text(_) => ("binary", " (STRING)"),
            Value::Int(_) => ("int32", ""),
            Value::Long(_) => ("int64", ""),
            Value::Truth(_) => ("boolean", ""),
        };
        let (repetition, name) = (column.repetition, column.name);
        format!("{repetition} {kind} {name}{annotation};")
    });
    let fields: String = fields.collect();
    parse_message_type(&format!("message exchange {{{fields}}}")).map(Arc::new)
}

/// Rows per row group, which are held in memory.
const GROUP: usize = 65_536;

/// Collects exchanges and writes them in row groups.
pub(super) struct Columns {
    writer: SerializedFileWriter<File>,
    message: Message,
    held: Vec<Exchange>,
}

impl Columns {
    pub(super) fn new(message: &Message, file: File) -> Result<Columns, RowError> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(Default::default()))
            .build();
        Ok(Columns {
            writer: SerializedFileWriter::new(file, schema()?, Arc::new(properties))?,
            message: message.clone(),
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
        let text = |text: String| ByteArray::from(text.into_bytes());
        let message = &self.message;
        let mut group = self.writer.next_row_group()?;
        for Column { value, .. } in COLUMNS {
            let Some(mut column) = group.next_column()? else {
                break;
            };
            let rows = held.iter();
            match value {
                Value::Text(of) => {
                    let cells = rows.map(|one| of(message, one).map(text));
                    write::<ByteArrayType>(&mut column, cells)?;
                }
                Value::Int(of) => {
                    let cells = rows.map(|one| of(message, one).map(|int| int as i32));
                    write::<Int32Type>(&mut column, cells)?;
                }
                Value::Long(of) => {
                    let long = |long| i64::try_from(long).unwrap_or(i64::MAX);
                    write::<Int64Type>(&mut column, rows.map(|one| of(message, one).map(long)))?;
                }
                Value::Truth(of) => {
                    write::<BoolType>(&mut column, rows.map(|one| of(message, one)))?;
                }
            }
            column.close()?;
        }
        group.close()?;
        Ok(())
    }
}

/// Writes one column of a row group.
fn write<T: DataType>(
    column: &mut SerializedColumnWriter<'_>,
    cells: impl Iterator<Item = Option<T::T>>,
) -> Result<(), ParquetError> {
    let mut present = Vec::new();
    let cells = cells.inspect(|cell| present.push(i16::from(cell.is_some())));
    let values: Vec<T::T> = cells.flatten().collect();
    let writer = column.typed::<T>();
    writer.write_batch(&values, Some(&present), None).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../../../../docs/reference/fleet.md");

    /// Name, type and nullability of each column in the schema.
    fn columns() -> Vec<(String, String, bool)> {
        let schema = schema().unwrap();
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
}
