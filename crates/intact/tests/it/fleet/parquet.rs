//! The Parquet files of a campaign, as another program reads them.

use super::{Rig, document, end};
use crate::peers::program;
use crate::program::Server;
use serde_json::Value;
use std::process::Command;

/// The first block of SQL of docs/reference/fleet.md.
fn documented_query() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/fleet.md");
    let page = std::fs::read_to_string(path).unwrap();
    let from = page.split("```sql\n").nth(1).unwrap();
    from.split("```").next().unwrap().to_owned()
}

#[test]
fn duckdb_reads_files_and_folders_as_they_are_and_counts_what_the_report_counts() {
    let Some(duckdb) = program("duckdb", "Parquet files of a campaign") else {
        return;
    };
    let server = Server::start(&[]);
    let rig = Rig::new(&server.plain(), 2, "100ms");
    let (report, _) = end(rig.start());
    let query = |sql: &str| -> Value {
        let mut command = Command::new(&duckdb);
        let command = command.args(["-json", "-c", sql]);
        document(&command.current_dir(rig.path("store")).output().unwrap())
    };
    let rows = query(&documented_query());
    let variants = report["groups"][0]["bench"]["variants"].as_array().unwrap();
    assert_eq!(rows.as_array().unwrap().len(), variants.len());
    for variant in variants {
        let folder = variant["name"].as_str().unwrap().replace('=', "-");
        let mut rows = rows.as_array().unwrap().iter();
        let row = rows.find(|row| row["variant"] == *folder).unwrap();
        assert_eq!(row["requests"], variant["requests"]["ok"], "{row}");
        assert_eq!(row["messages"], 2, "{row}");
        let fresh = if folder == "keepalive-on" { 0.0 } else { 1.0 };
        assert_eq!(row["fresh"], fresh, "{row}");
    }
    // every folder is a column, and each type is that of the page
    let columns = "SELECT column_name AS name, column_type AS type FROM (DESCRIBE FROM \
                   read_parquet('exchanges/plan=*/*/*/*.parquet', hive_partitioning = true))";
    let columns = query(columns);
    let of = |name: &str| {
        let mut columns = columns.as_array().unwrap().iter();
        let column = columns.find(|column| column["name"] == name);
        column.map_or(Value::Null, |column| column["type"].clone())
    };
    for (name, kind) in [
        ("plan", "VARCHAR"),
        ("variant", "VARCHAR"),
        ("label", "VARCHAR"),
        ("repetition", "INTEGER"),
        ("latency_ns", "BIGINT"),
        ("warmup", "BOOLEAN"),
        ("reuse", "VARCHAR"),
    ] {
        assert_eq!(of(name), kind, "{columns}");
    }
}
