//! Commands and options of features that this build was made without. They are known, so that the
//! message names the remedy.

#[cfg(not(feature = "fleet"))]
use crate::exit::Failed;

/// Options that are refused.
#[derive(clap::Args, Clone, Default)]
#[allow(dead_code, reason = "no value is ever accepted")]
pub(crate) struct LeftOut {
    #[cfg(not(feature = "prometheus"))]
    #[arg(long, hide = true, value_name = "FILE", value_parser = |_: &str| refuse("prometheus"))]
    prometheus: Option<String>,
    #[cfg(not(feature = "otlp"))]
    #[arg(long, hide = true, value_name = "URL", value_parser = |_: &str| refuse("otlp"), num_args = 0..=1, require_equals = true, default_missing_value = "")]
    otlp: Option<String>,
}

/// Why there is no live view, and the remedy.
#[cfg(not(all(feature = "live", unix)))]
pub(crate) const NO_LIVE_VIEW: &str = if cfg!(unix) {
    "this intact was built without its live view: build it with `--features live`, a default"
} else {
    "the live view draws on Unix terminals: run intact in a Linux container, or leave out --live"
};

/// A command that is refused, whatever follows it.
#[cfg(not(feature = "fleet"))]
#[derive(clap::Args)]
pub(crate) struct Command {
    #[arg(
        hide = true,
        num_args = 0..,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    _words: Vec<std::ffi::OsString>,
}

/// The error of a command that this build lacks.
#[cfg(not(feature = "fleet"))]
pub(crate) fn refuse_command(feature: &str) -> Failed {
    Failed::usage(anyhow::anyhow!("{feature}: {}", remedy(feature)))
}

/// Whether this build speaks HTTP/3; the error names the remedy.
pub(crate) fn http3() -> Result<(), String> {
    match intact_client::HAS_HTTP3 {
        true => Ok(()),
        false => Err(remedy("http3")),
    }
}

/// Whether this build has messages of gRPC as JSON; the error names the remedy.
pub(crate) fn grpc_json() -> Result<(), String> {
    match cfg!(feature = "grpc-json") {
        true => Ok(()),
        false => Err(remedy("grpc-json")),
    }
}

#[cfg(not(all(feature = "prometheus", feature = "otlp")))]
fn refuse(feature: &str) -> Result<String, String> {
    Err(remedy(feature))
}

fn remedy(feature: &str) -> String {
    format!("this build was made without it; cargo build --release --features {feature} has it")
}
