//! `--like DIR`: how production uses connections, from the ledger of a program or a capture there.

use crate::exit::Failed;
use anyhow::anyhow;
use intact_document::requirement::DocumentKind;
use intact_experiments::likeness::ConnectionBehaviour;
use intact_findings::{document_of, stored};
use intact_ledger::store::Reader;
use std::path::Path;

/// Of the destination with this host, if the ledger has one, else of all.
pub(crate) fn behaviour(folder: &Path, host: Option<&str>) -> Result<ConnectionBehaviour, Failed> {
    let reader = Reader::open(folder).map_err(Failed::unreadable)?;
    let producer = &reader.run().producer;
    if !matches!(
        document_of(reader.run()),
        DocumentKind::Watch | DocumentKind::Audit | DocumentKind::Lambda | DocumentKind::Fleet
    ) {
        let folder = folder.display();
        return Err(Failed::unreadable(anyhow!(
            "{folder} was recorded by `intact {producer}`, which is no traffic of production; record it with `intact watch` or `intact audit`"
        )));
    }
    let traffic = stored::traffic(&reader).map_err(Failed::unreadable)?;
    let name = folder.display().to_string();
    Ok(ConnectionBehaviour::of_traffic(
        &name,
        &traffic.facts(),
        host,
    ))
}
