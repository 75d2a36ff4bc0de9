//! What `intact fleet` says where SQS or S3 refuses: a stand-in on loopback answers as they do.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output};
use std::thread;

/// Answers every request in the same way until the process ends; its URL.
fn refusing(status: u16, kind: &'static str, body: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || while answer(&stream, status, kind, body).is_some() {});
        }
    });
    url
}

fn answer(mut stream: &TcpStream, status: u16, kind: &str, body: &str) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|&read| read > 0)?;
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.is_empty() {
            break;
        }
    }
    reader.read_exact(&mut vec![0; length]).ok()?;
    let head = format!(
        "HTTP/1.1 {status} Refused\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body.as_bytes()).ok()
}

fn run(url: &str, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_intact"))
        .arg("fleet")
        .args(words)
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "a-secret-that-nobody-prints")
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ENDPOINT_URL_SQS", url)
        .env("AWS_ENDPOINT", url)
        .env("AWS_ALLOW_HTTP", "true")
        .output()
        .unwrap()
}

/// The exit code and standard error, which names no secret.
fn code_and_error(out: &Output) -> (Option<i32>, String) {
    let words = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(!words.contains("a-secret-that"), "{words}");
    (out.status.code(), words)
}

#[test]
fn what_sqs_refuses_has_a_remedy() {
    const JSON: &str = "application/x-amz-json-1.0";
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(&folder);
    let store = folder.path().join("store").display().to_string();
    for (status, body, code, words) in [
        (
            400,
            r#"{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"The specified queue does not exist."}"#,
            2,
            "queue sqs://rig: not there",
        ),
        (
            403,
            r#"{"__type":"com.amazon.coral.service#AccessDeniedException","message":"not authorized to perform sqs:GetQueueUrl"}"#,
            4,
            "not permitted: not authorized to perform sqs:GetQueueUrl",
        ),
        (
            403,
            r#"{"__type":"com.amazon.coral.service#InvalidSignatureException","message":"Signature expired: 20260101T000000Z is now earlier than 20260101T010000Z"}"#,
            4,
            "Signature expired",
        ),
        (
            400,
            r#"{"__type":"com.amazonaws.sqs#RequestThrottled","message":"Rate exceeded"}"#,
            70,
            "throttled: Rate exceeded; try later",
        ),
        (503, "busy", 70, "throttled"),
    ] {
        let url = refusing(status, JSON, body);
        let words_of = ["send", &plan, "--queue", "sqs://rig", "--store", &store];
        let (exit, said) = code_and_error(&run(&url, &words_of));
        assert_eq!(exit, Some(code), "{body}: {said}");
        assert!(said.contains(words), "{body}: {said}");
    }
}

#[test]
fn what_s3_refuses_has_a_remedy() {
    for (status, body, code, words) in [
        (
            404,
            "<Error><Code>NoSuchBucket</Code><Message>The specified bucket does not exist</Message></Error>",
            5,
            "store s3://nowhere/rig: not there: NoSuchBucket",
        ),
        (
            403,
            "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>",
            4,
            "not permitted: AccessDenied",
        ),
        (
            403,
            "<Error><Code>RequestTimeTooSkewed</Code><Message>The difference between the request time and the current time is too large.</Message></Error>",
            4,
            "RequestTimeTooSkewed: The difference between the request time",
        ),
        (
            503,
            "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>",
            5,
            "throttled: SlowDown: Please reduce your request rate.; use fewer workers",
        ),
    ] {
        let url = refusing(status, "application/xml", body);
        let (exit, said) = code_and_error(&run(&url, &["report", "s3://nowhere/rig"]));
        assert_eq!(exit, Some(code), "{body}: {said}");
        assert!(said.contains(words), "{body}: {said}");
    }
}

/// The path of a plan.
fn plan(folder: &tempfile::TempDir) -> String {
    let plan = folder.path().join("plan.toml");
    let text = "name = \"t\"\nrepetitions = 1\nduration = \"20ms\"\n\
         [limits]\nrequests = 1000\nrate = 100\nworkers = 1\n\
         [[target]]\nname = \"t\"\nurl = \"http://127.0.0.1:9/\"\ni-own-this = \"127.0.0.1\"\n";
    std::fs::write(&plan, text).unwrap();
    plan.display().to_string()
}

#[test]
fn a_bucket_that_is_not_there_stops_a_campaign_before_anything_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(&folder);
    let body = "<Error><Code>NoSuchBucket</Code><Message>The specified bucket does not exist</Message></Error>";
    let url = refusing(404, "application/xml", body);
    for words in [
        &["run", &plan][..],
        &["send", &plan, "--queue", "sqs://rig"],
        &["work", &plan, "--index", "0"],
    ] {
        let words = [words, &["--store", "s3://nowhere"]].concat();
        let (exit, said) = code_and_error(&run(&url, &words));
        assert_eq!(exit, Some(2), "{said}");
        assert!(said.contains("create it or name another one"), "{said}");
    }
}
