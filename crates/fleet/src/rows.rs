//! The requests of one message, during the measurement: a CSV and a Parquet file. Both are
//! temporary files until the message ends.

mod columns;

use crate::message::Message;
use crate::store::{Store, StoreError};
use intact_ledger::Exchange;
use intact_ledger::export::csv;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};

/// Why rows could not be stored.
#[derive(Debug, thiserror::Error)]
pub enum RowError {
    /// A temporary file failed.
    #[error("cannot keep the rows of a message in the folder for temporary files (TMPDIR): {0}")]
    File(#[from] io::Error),
    /// The Parquet writer failed.
    #[error("cannot write Parquet: {0}")]
    Parquet(#[from] ::parquet::errors::ParquetError),
}

/// Receives the exchanges of one message.
pub struct RowFiles {
    run: String,
    variant: String,
    csv: BufWriter<File>,
    columns: columns::Columns,
    error: Option<RowError>,
}

impl RowFiles {
    /// Creates the temporary files.
    pub fn new(message: &Message) -> Result<RowFiles, RowError> {
        let mut csv = BufWriter::new(tempfile::tempfile()?);
        csv.write_all(csv::HEAD.as_bytes())?;
        Ok(RowFiles {
            run: message.id.clone(),
            variant: message.variant_name.clone(),
            csv,
            columns: columns::Columns::new(message, tempfile::tempfile()?)?,
            error: None,
        })
    }

    /// Adds one exchange. A failure is reported at the end, so that the measurement continues.
    pub fn add(&mut self, exchange: &Exchange) {
        if self.error.is_none()
            && let Err(error) = self.try_add(exchange)
        {
            self.error = Some(error);
        }
    }

    fn try_add(&mut self, exchange: &Exchange) -> Result<(), RowError> {
        csv::write_row(&mut self.csv, &self.run, &self.variant, exchange)?;
        self.columns.add(exchange)?;
        Ok(())
    }

    /// Copies both files to the store.
    pub(crate) fn store(self, store: &Store, message: &Message) -> Result<(), crate::WorkerError> {
        if let Some(error) = self.error {
            return Err(error.into());
        }
        let csv = self
            .csv
            .into_inner()
            .map_err(|error| RowError::File(error.into_error()))?;
        put(store, message, "csv", csv)?;
        put(store, message, "parquet", self.columns.finish()?)?;
        Ok(())
    }
}

fn put(
    store: &Store,
    message: &Message,
    kind: &str,
    mut file: File,
) -> Result<(), crate::WorkerError> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0)).map_err(RowError::File)?;
    file.read_to_end(&mut bytes).map_err(RowError::File)?;
    let stored: Result<(), StoreError> = store.put_rows(message, kind, bytes);
    Ok(stored?)
}
