//! Options of features that this build was made without: they are known, so that whoever asks for one is told what to do.

/// What is refused.
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

#[cfg(not(all(feature = "prometheus", feature = "otlp")))]
fn refuse(feature: &str) -> Result<String, String> {
    Err(format!(
        "this build was made without it; cargo build --release --features {feature} has it"
    ))
}
