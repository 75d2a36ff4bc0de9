//! Places in the code from which a program opens connections: each stack once, with a number that
//! its connections name.
//!
//! A frame has names and a line. It has no argument, no variable and no source text.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The number of a stack, unique within its run.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct StackId(pub u64);

/// The calls that led to the opening of connections.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodeStack {
    /// Unique within the run.
    pub id: StackId,
    /// The calls, the innermost first.
    pub frames: Vec<StackFrame>,
    /// The innermost call in the user's code, as an index of `frames`; absent where none is known.
    pub own: Option<u32>,
}

impl CodeStack {
    /// The innermost call in the user's code.
    pub fn place(&self) -> Option<&StackFrame> {
        self.frames.get(usize::try_from(self.own?).ok()?)
    }
}

/// One call of a stack.
#[serde_with::skip_serializing_none]
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct StackFrame {
    /// The name of the function.
    pub function: Arc<str>,
    /// The source file: relative to the code root, or from the name of its library on; absent where
    /// it is not known.
    pub file: Option<Arc<str>>,
    /// The line of the call, from 1.
    pub line: Option<u32>,
}

impl StackFrame {
    /// `billing.py:41`; the file where the line is not known; empty where neither is.
    pub fn position(&self) -> String {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{file}:{line}"),
            (Some(file), None) => file.to_string(),
            (None, _) => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_the_own_frame_or_not_known() {
        let frame = |function: &str| StackFrame {
            function: function.into(),
            file: None,
            line: None,
        };
        let mut stack = CodeStack {
            id: StackId(1),
            frames: vec![frame("connect"), frame("charge")],
            own: Some(1),
        };
        assert_eq!(stack.place(), Some(&frame("charge")));
        for own in [None, Some(2)] {
            stack.own = own;
            assert_eq!(stack.place(), None);
        }
    }
}
