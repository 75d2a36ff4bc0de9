//! When a script has an effect, and what is refused.

use super::*;
use proptest::prelude::*;

const A: ConnectionId = ConnectionId(1);
const B: ConnectionId = ConnectionId(2);

/// Decides about requests that come at these milliseconds after the first one, which comes at 0.
fn waits(script: &str, requests: &[(u64, ConnectionId)]) -> Vec<(u64, Option<Disturbance>)> {
    let script: Disturbances = script.parse().unwrap();
    let state = ScriptState::default();
    // the clock starts with a request, not with the server
    let start = 7_000_000_000;
    let decide = |(ms, connection)| {
        let now = Nanos(start + ms * 1_000_000);
        script.apply(&state, now, connection, Duration::ZERO)
    };
    decide((0, A));
    let found = requests.iter().map(|&request| decide(request));
    found
        .map(|found| (found.pause.as_millis() as u64, found.by.last().copied()))
        .collect()
}

#[test]
fn a_pause_holds_what_is_due_in_it_until_its_end() {
    let at = [
        (9_999, A),
        (10_000, A),
        (10_900, B),
        (11_000, A),
        (20_500, B),
    ];
    let paused = Some(Disturbance::Pause);
    assert_eq!(
        waits("pause=1s/10s", &at),
        [
            (0, None),
            (1000, paused),
            (100, paused),
            (0, None),
            (500, paused)
        ]
    );
    // once, and not before its time
    let at = [(4_000, A), (5_200, A), (10_200, A)];
    assert_eq!(
        waits("pause=1s@5s", &at),
        [(0, None), (800, paused), (0, None)]
    );
    // from a start on, with a period
    let at = [(200, A), (2_300, A), (3_000, A), (4_900, A)];
    assert_eq!(
        waits("pause=1s@2s/2500ms", &at),
        [(0, None), (700, paused), (0, None), (600, paused)]
    );
}

#[test]
fn a_stall_holds_the_first_connection_that_asks_in_it() {
    let stalled = Some(Disturbance::Stall);
    let at = [(100, A), (5_000, B), (5_100, A), (7_999, B), (8_000, B)];
    assert_eq!(
        waits("stall=3s@5s", &at),
        [
            (0, None),
            (3000, stalled),
            (0, None),
            (1, stalled),
            (0, None)
        ]
    );
    // the next time it is another one
    let at = [(5_000, B), (10_000, A), (10_100, B)];
    assert_eq!(
        waits("stall=1s/5s", &at),
        [(1000, stalled), (1000, stalled), (0, None)]
    );
}

#[test]
fn every_nth_response_is_slow_and_a_ramp_grows() {
    let slow = Some(Disturbance::Slow);
    // the first request is not in the list
    let at = [(1, A), (2, B), (3, A), (4, B), (5, A)];
    assert_eq!(
        waits("slow=200ms/3", &at),
        [(0, None), (200, slow), (0, None), (0, None), (200, slow)]
    );
    let ramp = Some(Disturbance::Ramp);
    let at = [(15_000, A), (30_000, A), (60_000, A), (90_000, A)];
    assert_eq!(
        waits("ramp=200ms/60s", &at),
        [(50, ramp), (100, ramp), (200, ramp), (200, ramp)]
    );
    let at = [(10_000, A), (40_000, A)];
    assert_eq!(waits("ramp=200ms@10s/60s", &at), [(0, None), (100, ramp)]);
}

#[test]
fn resets_are_a_fault_of_every_request_in_their_time() {
    let script: Disturbances = "reset=1s@5s,slow=1s/1".parse().unwrap();
    let state = ScriptState::default();
    let fault = |ms: u64| {
        let now = Nanos(ms * 1_000_000);
        script.apply(&state, now, A, Duration::ZERO).fault
    };
    let reset = Some(Fault::ResetBeforeAnswer);
    assert_eq!(
        [
            fault(0),
            fault(4_999),
            fault(5_000),
            fault(5_999),
            fault(6_000)
        ],
        [None, None, reset, reset, None]
    );
}

#[test]
fn disturbances_add_up() {
    let script: Disturbances = "slow=200ms/1,pause=1s/10s,stall=2s@11s".parse().unwrap();
    let state = ScriptState::default();
    let at = |ms: u64, delay| {
        let now = Nanos(ms * 1_000_000);
        script.apply(&state, now, A, Duration::from_millis(delay))
    };
    at(0, 0);
    // due in the pause because of both delays; its end is in the stall
    let found = at(9_500, 400);
    assert_eq!(found.pause, Duration::from_millis(3500));
    let by = [Disturbance::Slow, Disturbance::Pause, Disturbance::Stall];
    assert_eq!(found.by, by);
    // windows without a gap do not hold the server itself
    let endless: Disturbances = "pause=1s@0s/2s,stall=1001ms@1s/2s".parse().unwrap();
    let found = endless.apply(&ScriptState::default(), Nanos(0), A, Duration::ZERO);
    assert!(found.pause >= Duration::from_secs(500));
}

#[test]
fn what_cannot_be_is_refused_with_the_form_that_can() {
    let refused = |text: &str| text.parse::<Disturbances>().unwrap_err().to_string();
    for (text, words) in [
        ("puase=1s/10s", "there are pause, stall, reset, slow, ramp"),
        ("pause", "\"\" is no time"),
        ("pause=1s", "pause=1s@5s (once, after 5 s)"),
        ("pause=0s/10s", "pause=1s/10s"),
        ("pause=10s/10s", "begins again before it is over"),
        ("stall=1s/soon", "\"soon\" is no time"),
        ("slow=200ms/0", "slow=200ms/100"),
        ("slow=200ms/1.5", "slow=200ms/100"),
        ("slow=200ms@5s/100", "slow=200ms/100"),
        ("ramp=200ms", "ramp=200ms/60s"),
        ("ramp=200ms/0s", "ramp=200ms/60s"),
        ("pause=1s/10s,pause=1s@5s", "pause can be given once"),
    ] {
        let error = refused(text);
        assert!(error.contains(words), "{text}: {error}");
    }
    assert!("".parse::<Disturbances>().unwrap().is_empty());
    for kind in Disturbance::ALL {
        assert!(
            refused(&format!("{kind}=-1s/20")).contains("no time"),
            "{kind}"
        );
    }
}

proptest! {
    #[test]
    fn any_script_is_read_or_refused_and_decides_about_any_moment(
        text in "(pause|stall|reset|slow|ramp)=[0-9]{1,20}(ms|s|h)?(@[0-9]{1,20}s)?(/[0-9]{1,20}(ms|s)?)?",
        now in any::<u64>(),
    ) {
        if let Ok(script) = text.parse::<Disturbances>() {
            let state = ScriptState::default();
            script.apply(&state, Nanos(0), A, Duration::ZERO);
            script.apply(&state, Nanos(now), A, Duration::ZERO);
        }
    }
}
