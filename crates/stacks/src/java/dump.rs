//! The text of a thread dump of HotSpot: the calls of one thread.

use std::sync::Arc;

/// A call in a dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// The class with its package, and the method.
    pub(super) function: Arc<str>,
    /// The name of the source file, without a folder.
    pub(super) file: Option<Arc<str>>,
    pub(super) line: Option<u32>,
    /// It belongs to a named module, such as those of the JDK.
    pub(super) is_in_module: bool,
}

/// Calls of a thread, at most.
const MAX_CALLS: usize = crate::MAX_FRAMES;
/// What a thread has that carries a virtual one, and what precedes the calls of the latter, from
/// JDK 24 on.
const CARRYING: &str = "Carrying virtual thread";
const MOUNTED: &str = "Mounted virtual thread";

/// The calls of the thread with this number, the innermost first; `None` if there is none, or if
/// the calls are those of a virtual thread that the dump does not have.
pub(super) fn calls(dump: &str, thread: u32) -> Option<Vec<Call>> {
    let mut lines = dump.lines().skip_while(|line| !is_thread(line, thread));
    lines.next()?;
    let own: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
    let mounted = own.iter().position(|line| line.trim().starts_with(MOUNTED));
    let is_carrier = own.iter().any(|line| line.trim().starts_with(CARRYING));
    let start = match (mounted, is_carrier) {
        (Some(start), _) => start,
        (None, true) => return None,
        (None, false) => 0,
    };
    let calls = own[start..].iter().filter_map(|line| call(line));
    Some(calls.take(MAX_CALLS).collect())
}

/// Whether a line is the head of a thread: `"name" #1 ... nid=0x12 ...`, or `"name" #1 [18] ...`.
fn is_thread(line: &str, thread: u32) -> bool {
    // the name may have any letters
    let Some((_, head)) = line
        .strip_prefix('"')
        .and_then(|rest| rest.rsplit_once('"'))
    else {
        return false;
    };
    let number = head.split(' ').find_map(|word| {
        let decimal = word
            .strip_prefix('[')
            .and_then(|word| word.strip_suffix(']'));
        let number = word.strip_prefix("nid=").or(decimal)?;
        match number.strip_prefix("0x") {
            Some(number) => u32::from_str_radix(number, 16).ok(),
            None => number.parse().ok(),
        }
    });
    number == Some(thread)
}

/// `at com.acme.App.main(App.java:12)`, `at java.net.Socket.connect(java.base@17/Socket.java:12)`.
fn call(line: &str) -> Option<Call> {
    let (function, place) = line.trim().strip_prefix("at ")?.split_once('(')?;
    let place = place.strip_suffix(')')?;
    let (module, place) = match place.rsplit_once('/') {
        Some((module, place)) => (Some(module), place),
        None => (None, place),
    };
    let (file, line) = match place.rsplit_once(':') {
        Some((file, line)) => (Some(file), line.parse().ok()),
        None => (Some(place).filter(|file| file.contains('.')), None),
    };
    Some(Call {
        function: function.into(),
        file: file.map(Arc::from),
        line: line.filter(|line| *line > 0),
        is_in_module: module.is_some(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DUMP: &str = "2026-11-29 11:36:54\nFull thread dump OpenJDK 64-Bit Server VM:\n\n\
        \"main\" #1 prio=5 tid=0x00007f39 nid=0x4e4e waiting on condition  [0x00007f39]\n   \
        java.lang.Thread.State: RUNNABLE\n\
        \tat sun.nio.ch.Net.connect0(java.base@17.0.15/Native Method)\n\
        \tat sun.nio.ch.Net.connect(java.base@17.0.15/Net.java:579)\n\
        \t- locked <0x000000061> (a java.lang.Object)\n\
        \tat com.acme.App$Inner.open(App.java:12)\n\
        \tat com.acme.App.none(Unknown Source)\n\n\
        \"nid=0x7 \" #30 [20047] daemon nid=20047 runnable [0x]\n   \
        Carrying virtual thread #29\n\tat jdk.internal.vm.Continuation.run(java.base/C.java:1)\n\n\
        \"c\" #31 [31] daemon prio=5 [0x00007fa6b4127000]\n   Carrying virtual thread #32\n\
        \tat jdk.internal.vm.Continuation.run(java.base/C.java:1)\n   \
        Mounted virtual thread #32\n\tat App.main(App.java:3)\n";

    #[test]
    fn a_thread_has_its_own_calls() {
        let calls = |thread| calls(DUMP, thread);
        let main = calls(0x4e4e).unwrap();
        let names: Vec<(&str, Option<&str>, Option<u32>, bool)> = main
            .iter()
            .map(|one| {
                (
                    &*one.function,
                    one.file.as_deref(),
                    one.line,
                    one.is_in_module,
                )
            })
            .collect();
        assert_eq!(
            names,
            [
                ("sun.nio.ch.Net.connect0", None, None, true),
                ("sun.nio.ch.Net.connect", Some("Net.java"), Some(579), true),
                ("com.acme.App$Inner.open", Some("App.java"), Some(12), false),
                ("com.acme.App.none", None, None, false),
            ]
        );
        // the calls of its virtual thread are not there
        assert_eq!(calls(20047), None);
        assert_eq!(&*calls(31).unwrap()[0].function, "App.main");
        assert_eq!(calls(7), None);
    }

    proptest! {
        #[test]
        fn any_text_ends(text in "(\"|at |nid=|[(:/.)\\n]|.){0,60}", thread in any::<u32>()) {
            let _ = calls(&text, thread);
        }
    }
}
