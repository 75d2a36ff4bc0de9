//! Any bytes after the beginning of each format that one names, so that the fuzzer need not find
//! out how each begins: the first byte chooses the format.
#![no_main]

use intact_audit::{Audit, Input, InputOptions, KeyLog, Options};
use intact_fuzz::NullSink;
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use std::path::Path;

const BEGINNINGS: [&str; 34] = [
    "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset\n",
    "request-start,DNS,DNS+dialup,Response-delay,request-duration,bytes,status\n",
    "metric_name,timestamp,metric_value,check,error,error_code,expected_response,group,method,name,proto,scenario,service,status,subproto,tls_version,url,extra_tags,metadata\n",
    "{\"type\":\"Metric\",\"metric\":\"http_reqs\"}\n",
    "1795259227123456789,200,1500000,0,100,,aGk=,,0,GET,http://a.example:81/x,QTog\n",
    "{\"seq\":0,\"code\":200,\"timestamp\":\"2026-11-21T11:07:07Z\",\"latency\":1500000}\n",
    "timeStamp,elapsed,label,responseCode,responseMessage,success,bytes,URL,Latency,Connect\n",
    "<testResults version=\"1.2\">\n<httpSample t=\"9\" ts=\"1795248000250\" rc=\"200\" lb=\"a\">\n",
    "starttime\tseconds\tctime\tdtime\tttime\twait\n",
    "[21/Nov/2026:08:00:00 +0000] - 200 200 - GET http a.example \"/\" [Client 192.0.2.1] [Length 5] [Gzip -] [Sent-to b] \"c\" \"-\"\n",
    "2026-11-21T08:00:00Z at=info method=GET path=\"/\" status=200 service=5ms\n",
    "RUN\ta.B\tb\t1795248000000\t \t3.10.3\n",
    "{\"method\":\"Network.requestWillBeSent\",\"params\":{\"requestId\":\"1\",\"timestamp\":1,\"wallTime\":1795248000,\"request\":{\"url\":\"http://a/\"}}}\n",
    "[{\"message\":\"{\\\"message\\\":{\\\"method\\\":\\\"Network.responseReceived\\\"}}\"},",
    "36:7:version;2:21#4:type;4:http;2:id;1:a;}",
    "#Date: 2026-11-21\n#Fields: time-local cs-method cs(Cookie) sc-status\n08:00:00 GET \"a b\" 200\n",
    "time:2026-11-21T08:00:00Z\treq:GET / HTTP/1.1\tstatus:200\n",
    "a b [21/Nov/2026:08:00:00 +0000] 192.0.2.1 a I REST.GET.OBJECT k \"GET /k HTTP/1.1\" 200 - 5 5 7 6 \"-\" \"c\" -\n",
    "{\"EdgeStartTimestamp\":1795248000000000000,\"ClientRequestMethod\":\"GET\",\"EdgeResponseStatus\":200}\n",
    "2026-11-21T08:00:00.1Z stdout P ",
    "{\"log\":\"a\\n\",\"stream\":\"stdout\",\"time\":\"1\"}\n",
    "\x1b[36mweb-1  |\x1b[0m 192.0.2.1 - - [21/Nov/2026:08:00:00 +0000] \"GET / HTTP/1.1\" 200 5\n",
    "<190>1 2026-11-21T08:00:00Z a nginx 7 - [b c=\"d\"] {\"status\":200,\"request\":\"GET /\"}\nNov 21 08:00:01 a nginx[7]: {\"time\":1}\n",
    "192.0.2.1 a.example - [21/Nov/2026:08:00:00 +0000] \"GET / HTTP/1.1\" 200 5 \"-\" \"c\"\n",
    "a.example 192.0.2.1 - - [21/Nov/2026:08:00:00 +0000] (0 s) \"GET / HTTP/1.1\" 200 5 \"-\" \"c\"\n",
    "[pid: 7|app: 0|req: 1/1] 192.0.2.1 () {28 vars in 374 bytes} [Sat Nov 21 08:00:00 2026] GET / => generated 5 bytes in 2 msecs (HTTP/1.1 200) 2 headers in 79 bytes (1 switches on core 0)\n",
    "time,duration_ms,status\n",
    "2026-11-21T08:00:00.250Z REPORT RequestId: a\tDuration: 4.5 ms\n",
    "{\"timestamp\":\"2026-11-21T08:00:00Z\",\"flow_id\":1,\"event_type\":\"http\",\"http\":{\"url\":\"/\"}}\n",
    "2026-11-21T08:00:00.1Z lb 192.0.2.1:1 10.0.0.1:80 0.1 0.1 0.1 200 200 0 29 \"GET http://a:80/ HTTP/1.1\" \"c\" - -\n",
    "cluster.a.upstream_cx_total: 1\n",
    "# HELP a\n",
    "# pxname,svname,connect,reuse\n",
    "flow_id,is_new_flow,server_port,l7_request\n",
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
    // the lines in an envelope may have any format, or none
    let Ok(input) = input else { return };
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
