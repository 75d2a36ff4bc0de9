//! Everything that `wire` promises to its callers, through its public interface only.

mod http1;
