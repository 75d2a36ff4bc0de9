//! Values of options that a build without default features lacks. They are known, so that the
//! message names the remedy.

/// Why there is no live view, and the remedy.
#[cfg(not(all(feature = "live", unix)))]
pub(crate) const NO_LIVE_VIEW: &str = if cfg!(unix) {
    "this build was made without the feature live, a default"
} else {
    "the live view draws on Unix terminals: run intact in a Linux container, or leave out --live"
};

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

fn remedy(feature: &str) -> String {
    format!("this build was made without the feature {feature}, a default")
}
