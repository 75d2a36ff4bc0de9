//! Another name server for this process and the programs that it starts, without a link: a private
//! resolv.conf.

use super::private_files::{RESOLV_CONF, hide_name_services, replace, resolv_conf};
use super::step_error::{During, StepError};
use crate::error::LinkError;
use crate::remedy;
use crate::step::LinkStep;
use intact_sys::{namespaces, privilege};
use std::fs;
use std::net::IpAddr;

/// Makes this process, and the programs that it starts, look names up at port 53 of `server`. Only
/// for a process of one thread. Returns what still answers names outside.
///
/// # Errors
/// The system forbids it, or has no resolv.conf.
pub fn use_resolver(server: IpAddr) -> Result<Vec<&'static str>, LinkError> {
    enter(server).map_err(|StepError(step, error)| {
        let remedy = remedy::known(step, error.kind());
        LinkError::Resolver {
            step,
            error,
            remedy,
        }
    })
}

fn enter(server: IpAddr) -> Result<Vec<&'static str>, StepError> {
    let needs_user = enter_user_namespace()?;
    namespaces::new_mounts().during(LinkStep::Resolver)?;
    let system = fs::read_to_string(RESOLV_CONF).during(LinkStep::Resolver)?;
    replace(&[(RESOLV_CONF, resolv_conf(&system, server))]).during(LinkStep::Resolver)?;
    let visible = hide_name_services();
    if needs_user {
        privilege::drop_capabilities().during(LinkStep::Resolver)?;
    }
    Ok(visible)
}

/// Enters a user namespace, which anybody but root needs to make others; whether it did.
pub(super) fn enter_user_namespace() -> Result<bool, StepError> {
    let (user, group) = namespaces::ids();
    if user != 0 {
        namespaces::new_user().during(LinkStep::UserNamespace)?;
        namespaces::map_ids(user, group).during(LinkStep::UserMap)?;
    }
    Ok(user != 0)
}
