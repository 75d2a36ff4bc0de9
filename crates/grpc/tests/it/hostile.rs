//! Any bytes as descriptors: no panic, and a message only from types that fit together.

use super::SHOP;
use intact_grpc::Types;
use intact_grpc::reflection::{Query, Reply};
use proptest::prelude::*;

/// Calls every method that the fixture has, whatever became of it.
fn use_types(types: &Types) {
    for method in ["Add", "Watch", "Upload", "Talk"] {
        if let Ok(method) = types.method("shop.Cart", method) {
            for json in [
                "{}",
                r#"{"name":"x","size":{"width":1},"prices":{"a":1},"shelves":[1]}"#,
            ] {
                let _ = method.message(json);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_set_with_changed_bytes_does_not_panic(
        changes in prop::collection::vec((0..SHOP.len(), any::<u8>()), 1..8),
        end in 0..=SHOP.len(),
    ) {
        let mut bytes = SHOP.to_vec();
        for (at, value) in changes {
            bytes[at] = value;
        }
        if let Ok(types) = Types::of_set(&bytes) {
            use_types(&types);
        }
        let _ = Types::of_set(&bytes[..end]);
    }

    #[test]
    fn any_bytes_as_a_response_of_reflection_end_the_query(
        bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 1..4),
        framed: bool,
    ) {
        let mut query = Query::new("shop.Cart");
        for body in bodies {
            let Ok(Some(_)) = query.request() else { break };
            let body = match framed {
                true => intact_wire::grpc::frame(&body).unwrap(),
                false => body,
            };
            if query.take(Reply { grpc_status: Some(0), words: "", body: &body }).is_err() {
                break;
            }
        }
    }
}
