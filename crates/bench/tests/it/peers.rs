//! Real servers as their packages ship them: our counts equal theirs.
