//! Real servers as their packages ship them: our ledger equals their own count.
