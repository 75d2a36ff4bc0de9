//! What `document` promises, seen from outside.

mod requirement;
