//! Lines that cannot be read: in every format of lines they are counted, and mark missing traffic.

use crate::reading::{self, Outcome};
use intact_audit::{AuditError, KeyLog};
use intact_ledger::Outcome as Ended;

/// A log in a format: what comes before its lines, and the line of a request at this second.
struct Log {
    name: &'static str,
    head: &'static str,
    line: fn(usize) -> String,
    /// A message that is no request.
    message: Option<&'static str>,
}

const LOGS: [Log; 27] = [
    Log {
        name: "combined",
        head: "",
        line: |at| {
            format!(
                "192.0.2.1 - - [21/Nov/2026:08:00:{at:02} +0000] \"GET /{at} HTTP/1.1\" 200 5 \"-\" \"curl/8\" conn=1 reqs={at}"
            )
        },
        message: Some("2026/11/21 08:00:00 [error] 7#7: *1 open() \"/x\" failed"),
    },
    Log {
        name: "W3C",
        head: "#Version: 1.0\n#Fields: date time cs-method cs-uri-stem c-ip sc-status time-taken\n",
        line: |at| format!("2026-11-21 08:00:{at:02} GET /{at} 192.0.2.1 200 46"),
        message: None,
    },
    Log {
        name: "HAProxy",
        head: "",
        line: |at| {
            format!(
                "Nov 21 08:00:{at:02} lb haproxy[7]: 192.0.2.1:33317 [21/Nov/2026:08:00:{at:02}.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 \"GET /{at} HTTP/1.1\""
            )
        },
        message: Some("Nov 21 08:00:09 lb haproxy[7]: Proxy http-in started."),
    },
    Log {
        name: "nginx ingress",
        head: "",
        line: |at| {
            format!(
                "192.0.2.1 - - [21/Nov/2026:08:00:{at:02} +0000] \"GET /{at} HTTP/1.1\" 200 5 \"-\" \"curl/8\" 118 0.003 [default-web-80] [] 10.0.0.7:80 5 0.003 200 4f0a"
            )
        },
        message: None,
    },
    Log {
        name: "Django",
        head: "",
        line: |at| format!("[21/Nov/2026 08:00:{at:02}] \"GET /{at} HTTP/1.1\" 200 5"),
        message: Some("Watching for file changes with StatReloader"),
    },
    Log {
        name: "OVH",
        head: "",
        line: |at| {
            format!(
                "192.0.2.1 www.example - [21/Nov/2026:08:00:{at:02} +0000] \"GET /{at} HTTP/1.1\" 200 5 \"-\" \"curl/8\""
            )
        },
        message: None,
    },
    Log {
        name: "Gandi",
        head: "",
        line: |at| {
            format!(
                "www.example 192.0.2.1 - - [21/Nov/2026:08:00:{at:02} +0000] (0 s) \"GET /{at} HTTP/1.1\" 200 5 \"-\" \"curl/8\""
            )
        },
        message: None,
    },
    Log {
        name: "Nginx Proxy Manager, passed on",
        head: "",
        line: |at| {
            format!(
                "[21/Nov/2026:08:00:{at:02} +0000] - 200 200 - GET https www.example \"/{at}\" [Client 192.0.2.1] [Length 5] [Gzip -] [Sent-to 10.0.0.7] \"curl/8\" \"-\""
            )
        },
        message: None,
    },
    Log {
        name: "Nginx Proxy Manager",
        head: "",
        line: |at| {
            format!(
                "[21/Nov/2026:08:00:{at:02} +0000] 404 - GET http www.example \"/{at}\" [Client 192.0.2.1] [Length 5] [Gzip 1.5] \"curl/8\" \"-\""
            )
        },
        message: None,
    },
    Log {
        name: "NPMplus",
        head: "",
        line: |at| {
            format!(
                "[21/Nov/2026:08:00:{at:02} +0000] www.example 192.0.2.1 0.227 \"GET /{at} HTTP/2.0\" 207 125 440 - curl/8 (x; y)"
            )
        },
        message: None,
    },
    Log {
        name: "uWSGI",
        head: "",
        line: |at| {
            format!(
                "[pid: 7|app: 0|req: {at}/{at}] 192.0.2.1 () {{28 vars in 374 bytes}} [Sat Nov 21 08:00:{at:02} 2026] GET /{at} => generated 5 bytes in 2 msecs (HTTP/1.1 200) 2 headers in 79 bytes (1 switches on core 0)"
            )
        },
        message: Some("*** uWSGI is running in multiple interpreter mode ***"),
    },
    Log {
        name: "Caddy",
        head: "",
        line: |at| {
            format!(
                "{{\"level\":\"info\",\"ts\":17952480{at:02}.5,\"request\":{{\"remote_ip\":\"192.0.2.1\",\"remote_port\":\"4711\",\"proto\":\"HTTP/1.1\",\"method\":\"GET\",\"host\":\"a\",\"uri\":\"/{at}\"}},\"duration\":0.1,\"size\":5,\"status\":200}}"
            )
        },
        message: Some("{\"level\":\"warn\",\"ts\":1795248009.5,\"msg\":\"HTTP/3 is off\"}"),
    },
    Log {
        name: "Traefik",
        head: "",
        line: |at| {
            format!(
                "{{\"ClientAddr\":\"192.0.2.1:41342\",\"DownstreamStatus\":200,\"Duration\":1250000,\"RequestMethod\":\"GET\",\"RequestPath\":\"/{at}\",\"RequestProtocol\":\"HTTP/1.1\",\"StartUTC\":\"2026-11-21T08:00:{at:02}.25Z\"}}"
            )
        },
        message: Some("time=\"2026-11-21T08:00:00Z\" level=info msg=\"Starting provider\""),
    },
    Log {
        name: "Envoy",
        head: "",
        line: |at| {
            format!(
                "[2026-11-21T08:00:{at:02}.310Z] \"GET /{at} HTTP/1.1\" 200 - 154 0 226 100 \"192.0.2.1\" \"curl\" \"cc21d9b0\" \"a\" \"192.0.2.2:80\""
            )
        },
        message: Some("[2026-11-21 08:00:00.123][1][info][main] [server.cc:381] starting"),
    },
    Log {
        name: "ALB",
        head: "",
        line: |at| {
            format!(
                "http 2026-11-21T08:00:{at:02}.186641Z app/lb/50 192.0.2.1:48160 10.0.0.66:9000 0.000 0.001 0.000 200 200 5 257 \"GET http://a:80/{at} HTTP/1.1\" \"curl/8\" - - arn:aws:x \"Root=1\" \"-\" \"-\" 1 2026-11-21T08:00:00.364000Z \"forward\" \"-\" \"-\" \"10.0.0.66:9000\" \"200\" \"-\" \"-\" TID_1"
            )
        },
        message: None,
    },
    Log {
        name: "Zeek with columns",
        head: "#separator \\x09\n#path\thttp\n#fields\tts\tuid\tid.orig_h\tid.orig_p\tid.resp_h\tid.resp_p\ttrans_depth\tmethod\thost\turi\tversion\tstatus_code\n",
        line: |at| {
            format!(
                "17952480{at:02}.5\tC1\t192.0.2.1\t5000\t192.0.2.2\t80\t{}\tGET\ta.example\t/{at}\t1.1\t200",
                at + 1
            )
        },
        message: None,
    },
    Log {
        name: "Zeek in JSON",
        head: "",
        line: |at| {
            format!(
                "{{\"ts\":17952480{at:02}.5,\"uid\":\"C1\",\"id.orig_h\":\"192.0.2.1\",\"id.orig_p\":5000,\"id.resp_h\":\"192.0.2.2\",\"id.resp_p\":80,\"trans_depth\":{},\"method\":\"GET\",\"host\":\"a.example\",\"uri\":\"/{at}\",\"version\":\"1.1\",\"status_code\":200}}",
                at + 1
            )
        },
        message: None,
    },
    Log {
        name: "oha",
        head: "request-start,DNS,DNS+dialup,Response-delay,request-duration,bytes,status\n",
        line: |at| format!("{at}.5,0,0.001,0.002,0.003,5,200"),
        message: None,
    },
    Log {
        name: "k6 CSV",
        head: "metric_name,timestamp,metric_value,check,error,error_code,expected_response,group,method,name,proto,scenario,service,status,subproto,tls_version,url,extra_tags,metadata\n",
        line: |at| {
            let row = |metric: &str, value: &str| {
                format!(
                    "{metric},17952480{at:02},{value},,,,true,,GET,http://a/{at},HTTP/1.1,default,,200,,,http://a/{at},,"
                )
            };
            [
                row("http_reqs", "1.000000"),
                row("http_req_duration", "3.000000"),
                row("http_req_blocked", "0.000000"),
                row("http_req_connecting", "1.000000"),
                row("http_req_tls_handshaking", "0.000000"),
                row("http_req_sending", "0.000000"),
                row("http_req_waiting", "3.000000"),
                row("http_req_receiving", "0.000000"),
                row("http_req_failed", "0.000000"),
            ]
            .join("\n")
        },
        message: None,
    },
    Log {
        name: "classic load balancer",
        head: "",
        line: |at| {
            format!(
                "2026-11-21T08:00:{at:02}.137000Z lb 192.0.2.1:48160 10.0.0.1:80 0.000073 0.048048 0.000057 200 200 0 29 \"GET http://a.example:80/{at} HTTP/1.1\" \"curl/8\" - -"
            )
        },
        message: None,
    },
    Log {
        name: "Suricata",
        head: "",
        line: |at| {
            format!(
                "{{\"timestamp\":\"2026-11-21T08:00:{at:02}.250000+0000\",\"flow_id\":18,\"event_type\":\"http\",\"src_ip\":\"192.0.2.1\",\"src_port\":41342,\"tx_id\":{at},\"http\":{{\"hostname\":\"a.example\",\"url\":\"/{at}\",\"http_method\":\"GET\",\"protocol\":\"HTTP/1.1\",\"status\":200}}}}"
            )
        },
        message: Some(
            "{\"timestamp\":\"2026-11-21T08:00:00.1+0000\",\"flow_id\":7,\"event_type\":\"tls\",\"tls\":{}}",
        ),
    },
    Log {
        name: "table",
        head: "time,duration_ms,status\n",
        line: |at| format!("2026-11-21T08:00:{at:02}.250Z,412.5,200"),
        message: None,
    },
    Log {
        name: "JMeter",
        head: "timeStamp,elapsed,label,responseCode,responseMessage,success,URL,Latency,Connect\n",
        line: |at| format!("17952480{at:02}250,9,a,200,OK,true,http://a.example/{at},8,0"),
        message: None,
    },
    Log {
        name: "JMeter without codes",
        head: "timeStamp,elapsed,label,success,URL,Latency,Connect\n",
        line: |at| format!("17952480{at:02}250,9,a,true,http://a.example/{at},8,0"),
        message: None,
    },
    Log {
        name: "JMeter in XML",
        head: "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testResults version=\"1.2\">\n",
        line: |at| {
            format!(
                "<httpSample t=\"9\" lt=\"8\" ct=\"0\" ts=\"17952480{at:02}250\" s=\"true\" lb=\"http://a.example/{at}\" rc=\"200\" rm=\"OK\"/>"
            )
        },
        message: None,
    },
    Log {
        name: "Lambda",
        head: "",
        line: |at| {
            format!(
                "2026-11-21T08:00:{at:02}.250Z REPORT RequestId: 0d6d2a4c-0000-4000-8000-{at:012}\tDuration: 414.50 ms\tBilled Duration: 415 ms\tMemory Size: 128 MB\tMax Memory Used: 70 MB"
            )
        },
        message: Some("2026-11-21T08:00:00.250Z START RequestId: 0d6d2a4c Version: 7"),
    },
    Log {
        name: "Gatling",
        head: "RUN\ta.B\tb\t1795248000000\t \t3.10.3\n",
        line: |at| format!("REQUEST\t\thome\t17952480{at:02}250\t17952480{at:02}284\tOK\t "),
        message: None,
    },
];

/// What a system or a container puts around each line: it changes nothing.
const AROUND: [fn(&str) -> String; 9] = [
    |line| format!("Nov 21 08:00:01 web1 nginx[7]: {line}"),
    |line| format!("<190>Nov  1 08:00:01 web1 nginx: {line}"),
    |line| format!("<190>1 2026-11-21T08:00:01.5Z web1 nginx 7 - [a@1 b=\"c\"] {line}"),
    |line| format!("2026-11-21T08:00:01+0000 web1 nginx[7]: {line}"),
    |line| format!("Sat 2026-11-21 08:00:01 UTC web1 nginx[7]: {line}"),
    |line| format!("2026-11-21T08:00:01.123456789Z {line}"),
    |line| format!("\u{1b}[36mweb-1  | \u{1b}[0m{line}"),
    |line| format!("web_1  | 2026-11-21T08:00:01.123456789Z \u{1b}[32m{line}\u{1b}[0m"),
    |line| format!("[pod/web-1/nginx] 2026-11-21T08:00:01.123456789Z {line}"),
];

/// Number of lines of requests in each log.
const LINES: usize = 8;

impl Log {
    fn lines(&self) -> Vec<String> {
        (0..LINES).map(self.line).collect()
    }

    fn text(&self, lines: &[String]) -> String {
        format!("{}{}\n", self.head, lines.join("\n"))
    }
}

fn audited(text: &[u8]) -> Outcome {
    reading::bytes(text, KeyLog::default()).unwrap()
}

fn unread(outcome: &Outcome) -> bool {
    let caveat = outcome.caveat("lines-not-read");
    caveat.is_some_and(|caveat| caveat.incomplete)
}

#[test]
fn whole_logs_lack_nothing() {
    for log in &LOGS {
        let outcome = audited(log.text(&log.lines()).as_bytes());
        assert_eq!(outcome.exchanges().count(), LINES, "{}", log.name);
        assert!(!unread(&outcome), "{}", log.name);
    }
}

#[test]
fn heads_and_envelopes_change_nothing() {
    let access_logs = LOGS
        .iter()
        .filter(|log| log.head.is_empty() && !["Zeek in JSON", "Lambda"].contains(&log.name));
    for log in access_logs {
        for around in AROUND {
            let lines: Vec<String> = log.lines().iter().map(|line| around(line)).collect();
            let wrapped = log.text(&lines);
            let outcome = audited(wrapped.as_bytes());
            let read = outcome.exchanges().count();
            assert_eq!(read, LINES, "{}: {}", log.name, lines[0]);
            assert!(!unread(&outcome), "{}: {}", log.name, lines[0]);
            let plain = audited(log.text(&log.lines()).as_bytes());
            let rows = |outcome: &Outcome| -> Vec<_> {
                let rows = outcome
                    .exchanges()
                    .map(|one| (one.outcome, one.reuse, one.end));
                rows.collect()
            };
            assert_eq!(rows(&outcome), rows(&plain), "{}: {}", log.name, lines[0]);
        }
    }
}

/// What is left of a line that is damaged at this byte.
const DAMAGES: [fn(&str, usize) -> String; 5] = [
    |line, at| line[..at].to_owned(),
    |line, at| line[at..].to_owned(),
    // a text with a blank in front may be the next line of a message
    |line, at| format!(" {}", &line[..at]),
    |line, at| format!("\0\0\0\0{}", &line[at..]),
    // without the rest of a word
    |line, at| {
        let rest = line[at..].find(' ').map_or("", |end| &line[at + end + 1..]);
        format!("{}{rest}", &line[..at])
    },
];

#[test]
fn a_line_that_is_damaged_anywhere_is_read_or_counted() {
    let mut lost = Vec::new();
    for log in &LOGS {
        let whole = (log.line)(4);
        let step = if whole.len() > 400 { 29 } else { 5 };
        for (at, damage) in (1..whole.len())
            .step_by(step)
            .flat_map(|at| DAMAGES.map(|damage| (at, damage)))
        {
            let mut lines = log.lines();
            lines[4] = damage(&whole, at).trim_end().to_owned();
            // a short end, the next line of a message, and what a function prints may be anything
            let is_free = !whole.starts_with(&lines[4]) || log.name == "Lambda";
            let is_short = is_free && lines[4].len() * 2 < whole.len();
            if lines[4].is_empty() || is_short || whole[at..].starts_with(' ') {
                continue;
            }
            let outcome = audited(log.text(&lines).as_bytes());
            if outcome.exchanges().count() < LINES && !unread(&outcome) {
                lost.push(format!("{}: {}", log.name, lines[4]));
            }
        }
    }
    assert!(lost.is_empty(), "{lost:#?}");
}

#[test]
fn a_last_line_that_was_cut_is_read_or_counted() {
    for log in &LOGS {
        let text = log.text(&log.lines());
        let last = (log.line)(LINES - 1).len();
        let facts = |outcome: &Outcome| -> Vec<_> {
            let each = outcome.exchanges();
            let facts = each.map(|one| (one.status, one.connection.is_some()));
            facts.collect()
        };
        let whole = facts(&audited(text.as_bytes()));
        for cut in (2..last).step_by(3) {
            let outcome = audited(&text.as_bytes()[..text.len() - cut]);
            let read = facts(&outcome);
            // a status that was cut is unknown
            let mut pairs = read.iter().zip(&whole);
            let is_right = read.len() == LINES
                && pairs.all(|(one, all)| one.1 == all.1 && (one.0.is_none() || one.0 == all.0));
            assert!(
                is_right || unread(&outcome),
                "{}: {cut}: {read:?}",
                log.name
            );
        }
    }
}

#[test]
fn garbage_is_counted_and_messages_are_not() {
    // in XML it may be a part of a text, and a function prints anything
    let strict = |log: &&Log| !["JMeter in XML", "Lambda"].contains(&log.name);
    for log in LOGS.iter().filter(strict) {
        for garbage in ["\0\0\0\0\0\0", "7f 00 01 9c", "%%%"] {
            let mut lines = log.lines();
            lines.insert(3, garbage.to_owned());
            assert!(
                unread(&audited(log.text(&lines).as_bytes())),
                "{}",
                log.name
            );
        }
        let Some(message) = log.message else { continue };
        let mut lines = log.lines();
        lines.insert(3, message.to_owned());
        assert!(
            !unread(&audited(log.text(&lines).as_bytes())),
            "{}",
            log.name
        );
        // at the end of the file it may be the beginning of anything
        let cut = log.text(&lines[..4]);
        assert!(unread(&audited(cut.trim_end().as_bytes())), "{}", log.name);
    }
}

#[test]
fn messages_before_the_first_request_do_not_hide_the_format() {
    for log in &LOGS {
        let Some(message) = log.message else { continue };
        let mut lines = vec![message.to_owned(); 100];
        lines.extend(log.lines());
        let outcome = audited(log.text(&lines).as_bytes());
        assert_eq!(outcome.exchanges().count(), LINES, "{}", log.name);
        assert!(!unread(&outcome), "{}", log.name);
    }
}

#[test]
fn events_before_the_first_request_show_suricata() {
    let log = LOGS.iter().find(|log| log.name == "Suricata").unwrap();
    let mut lines = vec![log.message.unwrap().to_owned(); 2000];
    let quiet = audited(log.text(&lines).as_bytes());
    assert_eq!(quiet.exchanges().count(), 0);
    assert!(!unread(&quiet) && quiet.caveat("log-without-tls").is_some());
    lines.extend(log.lines());
    let outcome = audited(log.text(&lines).as_bytes());
    assert_eq!(outcome.exchanges().count(), LINES);
    assert!(!unread(&outcome));
    // events of another program
    let other = "{\"timestamp\":\"2026-11-21T08:00:00Z\",\"event_type\":\"login\"}\n";
    assert!(reading::bytes(other.as_bytes(), KeyLog::default()).is_err());
}

#[test]
fn an_error_in_a_table_is_a_failure_where_no_response_came() {
    // as Locust's `CsvRequestLogger` writes it
    let text = "timestamp,request_type,name,response_time_ms,response_length,status_code,exception\n\
        1795248000.123456,GET,/a,12.5,10,200,\n\
        1795248000.323456,GET,/a,3.2,0,0,\"ConnectionError(111, 'Connection refused')\"\n\
        1795248000.423456,GET,/a,3.2,5,500,\"HTTPError(500, 'a')\"\n\
        1795248000.523456,GET,/a,3.2,0,0,\n";
    let ended: Vec<Ended> = audited(text.as_bytes())
        .exchanges()
        .map(|one| one.outcome)
        .collect();
    let refused = Ended::Failed(intact_ledger::Failure::Refused);
    assert_eq!(ended, [Ended::Ok, refused, Ended::Ok, Ended::Unknown]);
}

#[test]
fn lines_of_another_program_do_not_hide_heads() {
    let log = LOGS.iter().find(|log| log.name == "HAProxy").unwrap();
    let mut lines = vec!["    at com.example.Foo.bar(Foo.java:7)".to_owned(); 45];
    lines.extend(log.lines());
    let outcome = audited(log.text(&lines).as_bytes());
    assert_eq!(outcome.exchanges().count(), LINES);
    assert!(!unread(&outcome));
}

#[test]
fn a_status_that_http_does_not_have_is_none() {
    for status in ["0", "000", "-", "5", "42", "099", "1000", "70000"] {
        let json = format!(
            r#"{{"time":"2026-11-21T08:00:00Z","request":"GET / HTTP/1.1","status":"{status}"}}"#
        );
        let ltsv = format!("time:2026-11-21T08:00:00Z\treq:GET / HTTP/1.1\tstatus:{status}");
        let combined = format!(
            "192.0.2.1 - - [21/Nov/2026:08:00:00 +0000] \"GET / HTTP/1.1\" {status} 5 \"-\" \"-\""
        );
        for line in [json, ltsv, combined] {
            let outcome = audited(format!("{line}\n").as_bytes());
            let statuses: Vec<_> = outcome.exchanges().map(|one| one.status).collect();
            assert_eq!(statuses, [None], "{line}");
            assert!(
                outcome.exchanges().all(|one| one.outcome == Ended::Unknown),
                "{line}"
            );
        }
    }
}

#[test]
fn a_program_that_logs_no_time_has_that_of_the_head() {
    type OfTime = fn(u64) -> String;
    let uvicorn: OfTime =
        |at| format!("INFO:     192.0.2.1:51{at}00 - \"GET /{at} HTTP/1.1\" 200 OK");
    let heroku: OfTime = |at| {
        format!(
            "at=info method=GET path=\"/{at}\" host=a.example fwd=\"192.0.2.1\" dyno=web.1 connect=1ms service=39ms status=200 bytes=9 protocol=https"
        )
    };
    let stamp: OfTime = |at| format!("web-1  | 2026-11-21T08:00:0{at}.123456789Z ");
    let router: OfTime = |at| format!("2026-11-21T08:00:0{at}.123456+00:00 heroku[router]: ");
    let bare: OfTime = |at| format!("2026-11-21T08:00:0{at}.123Z ");
    let lines = [
        (uvicorn, stamp, "INFO:     Started server process [1]"),
        (heroku, router, "State changed from starting to up"),
        (heroku, bare, ""),
    ];
    for (line, head, message) in lines {
        let mut text = match message {
            "" => String::new(),
            _ => format!("{}{message}\n", head(0)),
        };
        (1..5).for_each(|at| text += &format!("{}{}\n", head(at), line(at)));
        let outcome = audited(text.as_bytes());
        assert_eq!(outcome.exchanges().count(), 4, "{text}");
        assert!(!unread(&outcome), "{text}");
        let ends: Vec<u64> = outcome
            .exchanges()
            .map(|one| one.end.0 / 1_000_000_000)
            .collect();
        assert!(ends.is_sorted() && ends[3] - ends[0] == 3, "{ends:?}");
    }
    // without a head no time is known
    let bare = format!("{}\n{}\n", uvicorn(1), uvicorn(2));
    assert!(reading::bytes(bare.as_bytes(), KeyLog::default()).is_err());
}

#[test]
fn a_line_that_is_too_long_is_counted() {
    let log = &LOGS[0];
    let mut lines = log.lines();
    lines[3] = format!("{}{}", lines[3], "x".repeat(2 << 20));
    let outcome = audited(log.text(&lines).as_bytes());
    assert_eq!(outcome.exchanges().count(), LINES - 1);
    assert!(unread(&outcome));
}

#[test]
fn marks_of_encodings_change_nothing() {
    for log in &LOGS {
        let text = log.text(&log.lines());
        let encoded = |bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
            let marked = ['\u{feff}']
                .into_iter()
                .chain(text.chars())
                .collect::<String>();
            marked.encode_utf16().flat_map(bytes).collect()
        };
        for (name, bytes) in [
            ("UTF-8", format!("\u{feff}{text}").into_bytes()),
            ("UTF-16 LE", encoded(u16::to_le_bytes)),
            ("UTF-16 BE", encoded(u16::to_be_bytes)),
        ] {
            let outcome = audited(&bytes);
            assert_eq!(outcome.exchanges().count(), LINES, "{} in {name}", log.name);
            assert!(!unread(&outcome), "{} in {name}", log.name);
        }
    }
}

#[test]
fn the_same_log_twice_counts_once() {
    let log = &LOGS[0];
    let text = log.text(&log.lines());
    let open = |name: &str| {
        let reader = Box::new(std::io::Cursor::new(text.clone().into_bytes()));
        intact_audit::Input::from_reader(
            std::path::Path::new(name),
            reader,
            None,
            &intact_audit::InputOptions::default(),
        )
        .unwrap()
    };
    let error = reading::inputs(vec![open("a"), open("b")], KeyLog::default()).unwrap_err();
    assert!(matches!(error, AuditError::Again { .. }), "{error}");
    let caveats = AuditError::caveats(&[error]);
    assert!(!caveats[0].incomplete && caveats[0].message.contains("same content"));
}
