//! Drives a headless Chromium through its debugging pipe (`--remote-debugging-pipe`: JSON messages,
//! a zero byte after each).

use crate::skip::skip;
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A browser with one tab.
pub(crate) struct Chromium {
    child: Child,
    to: File,
    from: BufReader<File>,
    next: u64,
    session: Option<String>,
    /// What the page said or was refused: console messages, exceptions, broken policies, dialogs.
    pub(crate) complaints: Vec<String>,
    _profile: tempfile::TempDir,
}

impl Chromium {
    /// Starts the browser. A missing browser is printed; CI fails on it.
    pub(crate) fn start(test: &str) -> Option<Chromium> {
        let program = program("chromium", test)?;
        let profile = tempfile::tempdir().unwrap();
        let [to, from] = ["to", "from"].map(|name| profile.path().join(name));
        let made = Command::new("mkfifo").args([&to, &from]).status().unwrap();
        assert!(made.success());
        // a shell puts the pipe where Chromium looks for it: 3 to read from, 4 to write to
        let child = Command::new("sh")
            .args(["-c", r#"exec "$0" "$@" 3<"$TO" 4>"$FROM""#])
            .arg(program)
            .args([
                "--headless=new",
                // it only opens our own page, and its sandbox wants what a container has not
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                "--no-first-run",
                "--disable-background-networking",
                "--remote-debugging-pipe",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .env("TO", &to)
            .env("FROM", &from)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let to = OpenOptions::new().write(true).open(to).unwrap();
        let from = BufReader::new(File::open(from).unwrap());
        let mut browser = Chromium {
            child,
            to,
            from,
            next: 0,
            session: None,
            complaints: Vec::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", &json!({"url": "about:blank"}));
        let attached = browser.call(
            "Target.attachToTarget",
            &json!({"targetId": target["targetId"], "flatten": true}),
        );
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        Some(browser)
    }

    /// Opens a file at a width in pixels and a colour scheme, and waits until it is there.
    pub(crate) fn open(&mut self, page: &Path, width: u32, scheme: &str) {
        self.call(
            "Emulation.setDeviceMetricsOverride",
            &json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}),
        );
        self.call(
            "Emulation.setEmulatedMedia",
            &json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]}),
        );
        let url = format!("file://{}", page.display());
        self.call("Page.navigate", &json!({ "url": url }));
        loop {
            let message = self.message();
            if message["method"] == "Page.loadEventFired" {
                break;
            }
        }
    }

    /// What an expression of JavaScript gives.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let answer = self.call(
            "Runtime.evaluate",
            &json!({"expression": expression, "returnByValue": true}),
        );
        assert!(
            answer.get("exceptionDetails").is_none(),
            "{expression}: {answer}"
        );
        answer["result"]["value"].clone()
    }

    /// Presses a key.
    pub(crate) fn press(&mut self, key: &str) {
        let text = if key == "Enter" { "\r" } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let code = if key == "Enter" { 13 } else { 9 };
            self.call(
                "Input.dispatchKeyEvent",
                &json!({"type": kind, "key": key, "code": key, "text": text, "windowsVirtualKeyCode": code}),
            );
        }
    }

    /// Clicks what a selector finds first.
    pub(crate) fn click(&mut self, selector: &str) {
        let place = self.evaluate(&format!(
            "(() => {{ const it = document.querySelector({selector:?}); it.scrollIntoView({{block: 'center', behavior: 'instant'}}); \
             const box = it.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; }})()"
        ));
        for kind in ["mousePressed", "mouseReleased"] {
            self.call(
                "Input.dispatchMouseEvent",
                &json!({"type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1}),
            );
        }
    }

    /// The whole page as PNG, for a person to look at.
    pub(crate) fn picture(&mut self, file: &Path) {
        let size = self.call("Page.getLayoutMetrics", &json!({}));
        let size = &size["cssContentSize"];
        let clip =
            &json!({"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1});
        let shot = self.call(
            "Page.captureScreenshot",
            &json!({"captureBeyondViewport": true, "clip": clip}),
        );
        use base64::Engine;
        let data = base64::engine::general_purpose::STANDARD
            .decode(shot["data"].as_str().unwrap())
            .unwrap();
        std::fs::write(file, data).unwrap();
    }

    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let mut message = json!({"id": self.next, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).unwrap();
        loop {
            let answer = self.message();
            if answer["id"] == self.next {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].clone();
            }
        }
    }

    fn message(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.from.read_until(0, &mut bytes).unwrap();
        assert_eq!(bytes.pop(), Some(0), "Chromium went away");
        let message: Value = serde_json::from_slice(&bytes).unwrap();
        let parameters = &message["params"];
        match message["method"].as_str() {
            Some(
                "Runtime.exceptionThrown"
                | "Runtime.consoleAPICalled"
                | "Log.entryAdded"
                | "Page.javascriptDialogOpening",
            ) => self.complaints.push(message.to_string()),
            Some("Network.requestWillBeSent") => {
                let url = parameters["request"]["url"].as_str().unwrap_or("");
                if !url.starts_with("file://") && !url.starts_with("about:") {
                    self.complaints.push(format!("asked for {url}"));
                }
            }
            _ => {}
        }
        message
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where a program is, or a loud line that its test is skipped.
fn program(name: &str, test: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file());
    if found.is_none() {
        skip(
            test,
            &format!("{name} is not installed: cargo xtask test --install"),
        );
    }
    found
}
