//! Any bytes as results of load generators, so that the fuzzer need not find out how each begins:
//! the first byte chooses the tool.
#![no_main]

use intact_audit::{Audit, Input, InputOptions, KeyLog, Options};
use intact_fuzz::NullSink;
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use std::path::Path;

const BEGINNINGS: [&str; 6] = [
    "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset\n",
    "request-start,DNS,DNS+dialup,Response-delay,request-duration,bytes,status\n",
    "metric_name,timestamp,metric_value,check,error,error_code,expected_response,group,method,name,proto,scenario,service,status,subproto,tls_version,url,extra_tags,metadata\n",
    "{\"type\":\"Metric\",\"metric\":\"http_reqs\"}\n",
    "1795259227123456789,200,1500000,0,100,,aGk=,,0,GET,http://a.example:81/x,QTog\n",
    "{\"seq\":0,\"code\":200,\"timestamp\":\"2026-11-21T11:07:07Z\",\"latency\":1500000}\n",
];

fuzz_target!(|bytes: &[u8]| {
    let Some((&tool, rest)) = bytes.split_first() else {
        return;
    };
    let file = [
        BEGINNINGS[usize::from(tool) % BEGINNINGS.len()].as_bytes(),
        rest,
    ]
    .concat();
    let input = Input::from_reader(
        Path::new("fuzz"),
        Box::new(Cursor::new(file)),
        None,
        &InputOptions::default(),
    );
    let input = input.expect("a tool's first line is known");
    let base = input.begins_at().unwrap_or(0);
    let mut audit = Audit::new(Options {
        keys: KeyLog::default(),
        ladder: None,
        random: [7; 32],
        base,
    });
    let _ = audit.read(input, &mut NullSink, &mut || true);
    audit.finish(&mut NullSink);
});
