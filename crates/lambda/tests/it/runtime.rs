//! A runtime client in plain HTTP: this test program, started again by the platform.
#![allow(
    clippy::exit,
    reason = "a function of the tests: how it ends is what is tested"
)]

use intact_lambda::Function;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

/// A function that follows one word of its arguments for each invocation; the last word holds for
/// all others.
pub(crate) fn function(behaviour: &str) -> Function {
    let program = std::env::current_exe().unwrap();
    let words = ["--ignored", "--exact", "runtime::client", "--nocapture"];
    Function {
        command: std::iter::once(program.into_os_string())
            .chain(words.map(Into::into))
            .collect(),
        environment: vec![("FAKE".into(), behaviour.into())],
        handler: Some("file.function".into()),
        serves: None,
    }
}

/// A function that serves HTTP: each word is its answer to a request, the last to all further ones.
pub(crate) fn server(behaviour: &str) -> Function {
    let mut function = function(behaviour);
    function.command[3] = "runtime::serve".into();
    function.serves = Some("/things".to_owned());
    function
}

#[test]
#[ignore = "not a test: what the tests of the platform run as a function"]
fn serve() {
    let behaviour = std::env::var("FAKE").expect("run by the tests of the platform only");
    let words: Vec<&str> = behaviour.split(' ').collect();
    if words == ["deaf"] {
        std::thread::park();
    }
    let port: u16 = std::env::var("PORT").unwrap().parse().unwrap();
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let mut nth = 0;
    for stream in listener.incoming() {
        let mut stream = BufReader::new(stream.unwrap());
        let mut request = String::new();
        // the first connection only looks whether we listen
        if stream.read_line(&mut request).unwrap_or(0) == 0 {
            continue;
        }
        let method = request.split(' ').next().unwrap().to_owned();
        assert_eq!(request, format!("{method} /things HTTP/1.1\r\n"));
        let answer = match words[nth.min(words.len() - 1)] {
            "ok" => "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".to_owned(),
            "method" => format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{method}"),
            "broken" => "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n".to_owned(),
            "cut" => "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhe".to_owned(),
            "crash" => std::process::exit(7),
            other => panic!("no behaviour {other}"),
        };
        nth += 1;
        stream.get_mut().write_all(answer.as_bytes()).unwrap();
    }
}

#[test]
#[ignore = "not a test: what the tests of the platform run as a function"]
fn client() {
    let behaviour = std::env::var("FAKE").expect("run by the tests of the platform only");
    assert_eq!(std::env::var("_HANDLER").unwrap(), "file.function");
    let words: Vec<&str> = behaviour.split(' ').collect();
    let mut api = Api::connect();
    match words[0] {
        "init-error" => {
            let body = r#"{"errorType":"Runtime.ImportModuleError","errorMessage":"no module"}"#;
            assert_eq!(api.post("init/error", body), 202);
            std::process::exit(1);
        }
        "never-asks" => std::thread::park(),
        _ => {}
    }
    for nth in 0.. {
        let id = api.next();
        let (response, error) = (
            format!("invocation/{id}/response"),
            format!("invocation/{id}/error"),
        );
        match words[nth.min(words.len() - 1)] {
            "answer" => assert_eq!(api.post(&response, "\"fine\""), 202),
            "twice" => {
                assert_eq!(api.post(&response, "1"), 202);
                assert_eq!(api.post(&response, "2"), 400);
            }
            "error" => {
                let body = r#"{"errorType":"TypeError","errorMessage":"no such thing"}"#;
                assert_eq!(api.post(&error, body), 202);
            }
            "crash" => std::process::exit(7),
            "hang" => std::thread::park(),
            "skip" => {}
            "leave" => {
                assert_eq!(api.post(&response, "1"), 202);
                std::process::exit(0);
            }
            "stay" => {
                assert_eq!(api.post(&response, "1"), 202);
                std::thread::park();
            }
            other => panic!("no behaviour {other}"),
        }
    }
}

struct Api(BufReader<TcpStream>);

impl Api {
    fn connect() -> Api {
        let address = std::env::var("AWS_LAMBDA_RUNTIME_API").unwrap();
        Api(BufReader::new(TcpStream::connect(address).unwrap()))
    }

    fn next(&mut self) -> String {
        let (status, head) = self.ask("GET", "invocation/next", "");
        assert_eq!(status, 200);
        let find = |name: &str| {
            let line = head.iter().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_else(|| panic!("{name} in {head:?}"))
                .to_owned()
        };
        assert!(find("Lambda-Runtime-Deadline-Ms: ").parse::<u64>().is_ok());
        assert!(find("Lambda-Runtime-Invoked-Function-Arn: ").starts_with("arn:aws:lambda:"));
        assert!(find("Lambda-Runtime-Trace-Id: ").starts_with("Root="));
        find("Lambda-Runtime-Aws-Request-Id: ")
    }

    fn post(&mut self, path: &str, body: &str) -> u16 {
        self.ask("POST", path, body).0
    }

    fn ask(&mut self, method: &str, path: &str, body: &str) -> (u16, Vec<String>) {
        let length = body.len();
        let request = format!(
            "{method} /2018-06-01/runtime/{path} HTTP/1.1\r\nHost: api\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        self.0.get_mut().write_all(request.as_bytes()).unwrap();
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).unwrap() == 0 {
                // the platform is gone, or done with us
                std::process::exit(0);
            }
            if line == "\r\n" {
                break;
            }
            head.push(line.trim_end().to_owned());
        }
        let length = head
            .iter()
            .find_map(|line| line.strip_prefix("Content-Length: "));
        let mut body = vec![0; length.unwrap().parse().unwrap()];
        self.0.read_exact(&mut body).unwrap();
        (head[0].split(' ').nth(1).unwrap().parse().unwrap(), head)
    }
}
