//! Chooses the reader of a process's runtime, and keeps what it learned of the process.

use crate::code_root::RawFrame;
use crate::elf;
#[cfg(target_arch = "x86_64")]
use crate::go::Go;
use crate::java::Java;
#[cfg(target_arch = "x86_64")]
use crate::native::Native;
use crate::process::{Mapping, ProgramIdentity, mappings};
use crate::python::Python;
use crate::{CodeKind, CodeRoot, MAX_FRAMES, NotKnown, NotedCall, ThreadStack};
use std::collections::HashMap;
use std::path::Path;

/// Processes that are remembered; beyond this number all are forgotten.
const KNOWN: usize = 512;

/// Reads stacks of the threads of several processes.
pub struct StackReader {
    root: CodeRoot,
    known: HashMap<u32, (ProgramIdentity, Runtime)>,
}

enum Runtime {
    Python(Box<Python>),
    Java(Box<Java>),
    #[cfg(target_arch = "x86_64")]
    Go(Box<Go>),
    #[cfg(target_arch = "x86_64")]
    Native(Box<Native>),
    NotRead(NotKnown),
}

/// Runtimes whose stacks are not read: the beginning of the name of their program or library.
const OTHERS: &[(&str, &str)] = &[
    ("node", "Node without the NODE_OPTIONS of the run"),
    ("libnode", "Node without the NODE_OPTIONS of the run"),
    ("bun", "Bun"),
    ("deno", "Deno"),
    ("libruby", "Ruby"),
    ("ruby", "Ruby"),
    ("php", "PHP"),
    ("libphp", "PHP"),
    ("libcoreclr.", ".NET"),
    ("libpython2.", "Python 2"),
    ("libpypy", "PyPy"),
    ("perl", "Perl"),
    ("libperl.", "Perl"),
];

impl StackReader {
    /// A reader for the user's code below this root.
    pub fn new(root: CodeRoot) -> StackReader {
        StackReader {
            root,
            known: HashMap::new(),
        }
    }

    /// The calls that a program noted by itself.
    pub fn noted(&mut self, calls: Vec<NotedCall>) -> ThreadStack {
        let raw = calls.into_iter().take(MAX_FRAMES).map(|call| RawFrame {
            function: call.function,
            path: Some(call.path).filter(|path| !path.is_empty()),
            line: Some(call.line).filter(|line| *line > 0),
            kind: CodeKind::Other,
            defined: None,
        });
        self.root.apply(raw.collect())
    }

    /// The calls in which a thread stands, which must not run meanwhile.
    ///
    /// # Errors
    /// The stack is not known, for this reason.
    pub fn read(&mut self, process: u32, thread: u32) -> Result<ThreadStack, NotKnown> {
        let identity = ProgramIdentity::of(process).ok_or(NotKnown::Unreadable)?;
        let is_known = self
            .known
            .get(&process)
            .is_some_and(|(known, _)| *known == identity);
        if !is_known {
            if self.known.len() >= KNOWN {
                self.known.clear();
            }
            let runtime = Runtime::of(process, self.root.folder());
            self.known.insert(process, (identity, runtime));
        }
        let Some((_, runtime)) = self.known.get_mut(&process) else {
            return Err(NotKnown::Unreadable);
        };
        let frames = match runtime {
            Runtime::Python(python) => python.stack(process, thread)?,
            Runtime::Java(java) => java.stack(thread)?,
            #[cfg(target_arch = "x86_64")]
            Runtime::Go(go) => go.stack(thread)?,
            #[cfg(target_arch = "x86_64")]
            Runtime::Native(native) => native.stack(thread)?,
            Runtime::NotRead(why) => return Err(why.clone()),
        };
        Ok(self.root.apply(frames))
    }
}

impl Runtime {
    fn of(process: u32, root: &Path) -> Runtime {
        let maps = mappings(process);
        if maps.is_empty() {
            return Runtime::NotRead(NotKnown::Unreadable);
        }
        match Python::find(process, &maps) {
            Some(Ok(python)) => return Runtime::Python(Box::new(python)),
            Some(Err(why)) => return Runtime::NotRead(why),
            None => {}
        }
        let is_java = |map: &Mapping| map.path.ends_with("/libjvm.so");
        if maps.iter().any(is_java) {
            return match Java::new(process, root) {
                Ok(java) => Runtime::Java(Box::new(java)),
                Err(why) => Runtime::NotRead(why),
            };
        }
        // a program of Go may have any name
        #[cfg(target_arch = "x86_64")]
        if elf::is_go(process) {
            return match Go::new(process, &maps, root) {
                Ok(go) => Runtime::Go(Box::new(go)),
                Err(why) => Runtime::NotRead(why),
            };
        }
        if let Some(name) = maps.iter().find_map(other) {
            return Runtime::NotRead(NotKnown::Runtime(name.to_owned()));
        }
        #[cfg(target_arch = "x86_64")]
        return Runtime::Native(Box::new(Native::new(process, maps)));
        #[cfg(not(target_arch = "x86_64"))]
        Runtime::NotRead(NotKnown::Runtime("this processor".to_owned()))
    }
}

/// The runtime that a file belongs to, if it is one of the others.
fn other(map: &Mapping) -> Option<&'static str> {
    let name = map.path.rsplit('/').next()?;
    let found = OTHERS.iter().find(|(begin, _)| name.starts_with(begin));
    found.map(|(_, runtime)| *runtime)
}
