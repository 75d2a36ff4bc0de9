//! The requests of one message while it is measured: a CSV and, with the feature `parquet`, a Parquet file, both in temporary files
//! until the message is over.

#[cfg(feature = "parquet")]
mod columns;

use crate::message::Message;
use crate::store::{Store, StoreError};
use intact_ledger::Exchange;
use intact_ledger::export::csv;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};

/// Why rows could not be kept.
#[derive(Debug, thiserror::Error)]
pub enum RowError {
    /// A temporary file.
    #[error("cannot keep the rows of a message in the folder for temporary files (TMPDIR): {0}")]
    File(#[from] io::Error),
    /// The Parquet writer.
    #[cfg(feature = "parquet")]
    #[error("cannot write Parquet: {0}")]
    Parquet(#[from] ::parquet::errors::ParquetError),
}

/// Takes the exchanges of one message.
pub struct RowFiles {
    run: String,
    variant: String,
    csv: BufWriter<File>,
    #[cfg(feature = "parquet")]
    columns: columns::Columns,
    trouble: Option<RowError>,
}

impl RowFiles {
    /// Opens the temporary files.
    pub fn new(message: &Message) -> Result<RowFiles, RowError> {
        let mut csv = BufWriter::new(tempfile::tempfile()?);
        csv.write_all(csv::HEAD.as_bytes())?;
        Ok(RowFiles {
            run: message.id.clone(),
            variant: message.variant_name.clone(),
            csv,
            #[cfg(feature = "parquet")]
            columns: columns::Columns::new(message, tempfile::tempfile()?)?,
            trouble: None,
        })
    }

    /// Takes one exchange. Trouble is kept until the end: measuring goes on.
    pub fn add(&mut self, exchange: &Exchange) {
        if self.trouble.is_none()
            && let Err(error) = self.try_add(exchange)
        {
            self.trouble = Some(error);
        }
    }

    fn try_add(&mut self, exchange: &Exchange) -> Result<(), RowError> {
        csv::write_row(&mut self.csv, &self.run, &self.variant, exchange)?;
        #[cfg(feature = "parquet")]
        self.columns.add(exchange)?;
        Ok(())
    }

    /// Puts both files into the store.
    pub(crate) fn store(self, store: &Store, message: &Message) -> Result<(), crate::WorkerError> {
        if let Some(trouble) = self.trouble {
            return Err(trouble.into());
        }
        let csv = self
            .csv
            .into_inner()
            .map_err(|error| RowError::File(error.into_error()))?;
        put(store, message, "csv", csv)?;
        #[cfg(feature = "parquet")]
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
