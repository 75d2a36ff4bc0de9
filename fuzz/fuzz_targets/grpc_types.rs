//! Any bytes as a descriptor set, or as what a server of reflection sends: no panic, calls that
//! end, and requests that are framed. The first byte chooses which; parts are separated by 0x1e,
//! and the last part of a set is the JSON of a message.

#![no_main]

use intact_grpc::Types;
use intact_grpc::reflection::{Query, Reply, reply};
use intact_wire::grpc::{frame, unframe};
use libfuzzer_sys::fuzz_target;

const JSON: &str = r#"{"name":"x","count":"1","size":{"width":1},"prices":{"a":1},"shelves":[1],"addedAt":"1970-01-01T00:00:01Z"}"#;

fuzz_target!(|data: &[u8]| {
    let Some((&how, rest)) = data.split_first() else {
        return;
    };
    match how % 3 {
        0 => {
            let cut = rest
                .iter()
                .rposition(|&byte| byte == 0x1e)
                .unwrap_or(rest.len());
            let json = std::str::from_utf8(rest.get(cut + 1..).unwrap_or_default());
            if let Ok(types) = Types::of_set(&rest[..cut]) {
                use_types(&types, json.unwrap_or(JSON));
            }
        }
        1 => ask(rest),
        _ => {
            if let Ok(responses) = reply(&[], rest) {
                assert!(unframe(&responses).all(|one| one.is_ok()));
            }
        }
    }
});

fn ask(parts: &[u8]) {
    let mut query = Query::new("shop.Cart");
    let mut parts = parts.split(|&byte| byte == 0x1e);
    let mut calls = 0;
    while let Ok(Some((_, body))) = query.request() {
        calls += 1;
        assert!(calls <= 32);
        assert!(unframe(&body).all(|one| one.is_ok()));
        let body = frame(parts.next().unwrap_or_default()).expect("a short message");
        let grpc_status = Some(0);
        if query
            .take(Reply {
                grpc_status,
                words: "",
                body: &body,
            })
            .is_err()
        {
            return;
        }
    }
    if let Ok(types) = query.finish() {
        use_types(&types, JSON);
    }
}

fn use_types(types: &Types, json: &str) {
    for method in ["Add", "Watch"] {
        if let Ok(method) = types.method("shop.Cart", method) {
            let _ = method.message(json);
            let _ = method.message("{}");
        }
    }
}
