//! Rules that a requirement asks for, and the documents that apply them.

use intact_document::requirement::{DocumentKind, Requirement};
use intact_findings::check_requirement;

#[test]
fn a_rule_that_a_document_does_not_apply_is_refused() {
    let fault = |expression: &str, document: DocumentKind| {
        let requirement = expression.parse::<Requirement>();
        let refused = requirement.and_then(|one| check_requirement(&one, document));
        refused.map_err(|error| error.to_string().lines().next().unwrap().to_owned())
    };
    let rule = "findings.connection-close-sent == 0";
    assert_eq!(fault(rule, DocumentKind::Audit), Ok(()));
    // of a service, what it sends onwards
    assert_eq!(fault(rule, DocumentKind::Bench), Ok(()));
    assert_eq!(
        fault(rule, DocumentKind::Fault).unwrap_err(),
        "`findings.connection-close-sent` is not known to `intact watch --fault`; it is to bench, watch, compare, audit, lambda"
    );
    let rule = "findings.connection-not-kept == 0";
    assert_eq!(fault(rule, DocumentKind::Check), Ok(()));
    assert!(fault(rule, DocumentKind::Watch).is_err());
    assert_eq!(
        fault("findings.conection-not-kept == 0", DocumentKind::Check).unwrap_err(),
        "`intact check` has no rule `conection-not-kept`; did you mean `connection-not-kept`?"
    );
}
