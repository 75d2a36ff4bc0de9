//! A Unix socket by which a link is switched while a command runs on it: a change a line, an answer
//! a line.

use crate::system::{Channel, Listener};
use anyhow::{Context, bail};
use intact_link::{Link, LinkChange};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

/// The longest line.
const LONGEST: u64 = 4096;

/// The socket. Its file goes with this value.
pub(crate) struct Control {
    path: PathBuf,
}

impl Control {
    /// Listens. A socket without a listener (left by a kill -9) is replaced, and nothing else.
    pub(crate) fn open(path: PathBuf, link: &Arc<Link>) -> anyhow::Result<Control> {
        let named = || format!("--control {}", path.display());
        if let Ok(there) = fs::symlink_metadata(&path) {
            match Channel::connect(&path) {
                // connect(2) refuses a file of any kind
                Err(error)
                    if error.kind() == std::io::ErrorKind::ConnectionRefused
                        && there.file_type().is_socket() =>
                {
                    fs::remove_file(&path).with_context(named)?;
                }
                _ => bail!("{}: there is something already", named()),
            }
        }
        let listener = Listener::bind(&path).with_context(named)?;
        let link = Arc::downgrade(link);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let link = link.clone();
                // a reader that goes away, or never speaks, is no concern of others
                std::thread::spawn(move || obey(&stream, &link));
            }
        });
        Ok(Control { path })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Takes changes until the other end is done, or the link is.
fn obey(stream: &Channel, link: &Weak<Link>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if reader.by_ref().take(LONGEST).read_line(&mut line)? == 0 {
            return Ok(());
        }
        let Some(link) = link.upgrade() else {
            return Ok(());
        };
        let answer = match line.trim().parse::<LinkChange>() {
            Ok(change) => link
                .change(&change)
                .map_or_else(|error| error.to_string(), |()| "done".to_owned()),
            Err(error) => error.to_string(),
        };
        let mut stream = stream;
        writeln!(stream, "{answer}")?;
    }
}
