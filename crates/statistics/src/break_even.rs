//! After how many requests on one connection a more expensive setup no longer matters.

/// More requests than this are reported as "never": no connection carries them.
pub const MAX_REQUESTS: u64 = 1_000_000_000;

/// The smallest n from which the times per request, (`setup_a` + n w)/n and (`setup_b` + n w)/n,
/// differ by less than `share` of the smaller.
///
/// w is `per_request`; all times are in one unit. From |A - B| < share (min(A, B) + n w) follows
/// n > (|A - B| / share - min(A, B)) / w. `None` when a time is negative or no number, `share` is
/// not positive, or n would exceed [`MAX_REQUESTS`].
pub fn requests_until_alike(
    setup_a: f64,
    setup_b: f64,
    per_request: f64,
    share: f64,
) -> Option<u64> {
    let usable = |time: f64| time.is_finite() && time >= 0.0;
    if !(usable(setup_a)
        && usable(setup_b)
        && usable(per_request)
        && share.is_finite()
        && share > 0.0)
    {
        return None;
    }
    let apart = (setup_a - setup_b).abs();
    let cheaper = setup_a.min(setup_b);
    let alike_at = |n: u64| apart < share * (n as f64).mul_add(per_request, cheaper);
    let bound = (apart / share - cheaper) / per_request;
    // the bound is rounded; the definition itself decides between the whole numbers next to it
    let near = if bound.is_nan() {
        1.0
    } else {
        bound.clamp(1.0, MAX_REQUESTS as f64)
    } as u64;
    (near.saturating_sub(1).max(1)..=near + 2).find(|&n| n <= MAX_REQUESTS && alike_at(n))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_round_trip_more_of_tls_is_worth_97_requests() {
        // 30 ms away: TLS 1.2 sets up in 120 ms, 1.3 in 90, a request takes 30; 30 / 0.01 = 3,000 =
        // 90 + 97 x 30
        assert_eq!(requests_until_alike(120.0, 90.0, 30.0, 0.01), Some(98));
        assert_eq!(requests_until_alike(120.0, 90.0, 30.1, 0.01), Some(97));
    }

    #[test]
    fn equal_set_ups_are_alike_from_the_first_request() {
        assert_eq!(requests_until_alike(50.0, 50.0, 1.0, 0.01), Some(1));
        assert_eq!(
            requests_until_alike(0.0, 0.0, 0.0, 0.01),
            None,
            "nothing took any time: nothing to compare"
        );
    }

    #[test]
    fn never_is_printed_as_never() {
        assert_eq!(requests_until_alike(120.0, 90.0, 0.0, 0.01), None);
        assert_eq!(requests_until_alike(120.0, 90.0, 1e-9, 0.01), None);
        for bad in [f64::NAN, f64::INFINITY, -1.0] {
            assert_eq!(requests_until_alike(bad, 1.0, 1.0, 0.01), None);
            assert_eq!(requests_until_alike(1.0, 1.0, bad, 0.01), None);
            assert_eq!(requests_until_alike(1.0, 1.0, 1.0, bad), None);
        }
    }

    proptest! {
        #[test]
        fn it_is_the_smallest_number_that_fits(a in 0.0..500.0_f64, b in 0.0..500.0_f64, w in 0.01..200.0_f64) {
            let n = requests_until_alike(a, b, w, 0.01).unwrap();
            let differs = |n: u64| {
                let per = |setup: f64| (setup + n as f64 * w) / n as f64;
                (per(a) - per(b)).abs() / per(a).min(per(b))
            };
            prop_assert!(differs(n) < 0.01 + 1e-9);
            prop_assert!(n == 1 || differs(n - 1) >= 0.01 - 1e-9);
        }
    }
}
