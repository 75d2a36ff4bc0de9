//! Round trips, limits and hostile header blocks.

use intact_wire::h2::hpack::{Block, BlockCache, Decoder, Encoder, Error, Field, Indexing};
use proptest::collection::vec;
use proptest::prelude::*;

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Pairs, Error> {
    let mut fields = Vec::new();
    decoder.decode(block, |field| {
        fields.push((field.name.to_vec(), field.value.to_vec()));
    })?;
    Ok(fields)
}

fn block(encoder: &mut Encoder, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    encoder.begin(&mut out);
    for (name, value) in fields {
        encoder.encode(
            name.as_bytes(),
            value.as_bytes(),
            Indexing::Incremental,
            &mut out,
        );
    }
    out
}

#[test]
fn a_small_block_that_names_a_large_entry_many_times_is_refused() {
    let mut decoder = Decoder::new(16 * 1024);
    let mut bomb = Vec::new();
    Encoder::default().encode(b"x", &[b'a'; 4000], Indexing::Incremental, &mut bomb);
    bomb.extend([0xbe; 100]);
    assert_eq!(
        decode(&mut decoder, &bomb),
        Err(Error::ListTooLong { limit: 16 * 1024 })
    );
}

#[test]
fn indices_without_an_entry_are_refused() {
    for (bad, index) in [
        ([0x80].as_slice(), 0),
        (&[0xbe], 62),
        (&[0x7f, 0x00, 0x00], 63),
    ] {
        let error = decode(&mut Decoder::default(), bad).unwrap_err();
        assert_eq!(error, Error::Index { index, entries: 61 });
    }
}

#[test]
fn a_table_may_not_grow_past_our_settings_nor_change_within_a_block() {
    let mut decoder = Decoder::default();
    assert_eq!(
        decode(&mut decoder, &[0x3f, 0xe1, 0x1f]),
        Ok(vec![]),
        "4096 is the default"
    );
    assert_eq!(
        decode(&mut decoder, &[0x3f, 0xe2, 0x1f]),
        Err(Error::SizeUpdate {
            size: 4097,
            max: 4096
        })
    );
    assert_eq!(
        decode(&mut decoder, &[0x82, 0x20]),
        Err(Error::SizeUpdate { size: 0, max: 4096 })
    );
}

#[test]
fn strings_that_end_too_early_are_refused() {
    for cut in [
        &[0x40][..],
        &[0x40, 0x01],
        &[0x40, 0x01, b'a'],
        &[0x40, 0x01, b'a', 0x05, b'b'],
        &[0x40, 0xff],
    ] {
        assert_eq!(
            decode(&mut Decoder::default(), cut),
            Err(Error::Truncated),
            "{cut:?}"
        );
    }
}

#[test]
fn two_resizes_between_blocks_both_reach_the_decoder() {
    let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
    decode(&mut decoder, &block(&mut encoder, &[("a", "b")])).unwrap();
    encoder.resize(0);
    encoder.resize(100);
    let bytes = block(&mut encoder, &[("c", "d")]);
    assert_eq!(bytes[..3], [0x20, 0x3f, 69]);
    assert_eq!(
        decode(&mut decoder, &bytes),
        Ok(vec![(b"c".to_vec(), b"d".to_vec())])
    );
    // "a" was evicted from both tables when their size became 0
    assert_eq!(
        decode(&mut decoder, &[0xbf]),
        Err(Error::Index {
            index: 63,
            entries: 62
        })
    );
}

#[test]
fn entries_from_before_a_decoder_are_refused() {
    let mut encoder = Encoder::default();
    block(&mut encoder, &[("old", "1")]);
    let seen = block(&mut encoder, &[("new", "2"), ("old", "1")]);
    let mut names = Vec::new();
    let refused = Decoder::default().decode(&seen, |field| names.push(field.name.to_vec()));
    assert_eq!(names, [b"new"]);
    let (index, entries) = (63, 62);
    assert_eq!(refused, Err(Error::Index { index, entries }));
}

#[test]
fn a_cache_repeats_only_blocks_that_do_not_depend_on_the_table() {
    let status = |digest: &mut u32, field: Field<'_>| {
        if field.name == b":status" {
            *digest = std::str::from_utf8(field.value).unwrap().parse().unwrap();
        }
    };
    let mut memo = BlockCache::default();
    let mut decoder = Decoder::default();
    let mut calls = 0;
    for _ in 0..3 {
        let read = memo.read(
            &mut decoder,
            &[0x88, 0x00, 1, b'a', 1, b'b'],
            0,
            |digest, field| {
                calls += 1;
                status(digest, field);
            },
        );
        assert_eq!(read, Ok(200));
    }
    assert_eq!(calls, 2, "two fields, decoded once");

    // the same byte means another field after the table has changed
    let insert = |value: &str| block(&mut Encoder::default(), &[("x", "y"), (":status", value)]);
    for value in ["418", "299"] {
        decode(&mut decoder, &insert(value)).unwrap();
        assert_eq!(
            memo.read(&mut decoder, &[0xbe], 0, status),
            Ok(value.parse().unwrap())
        );
    }
}

#[test]
fn a_block_has_its_size_and_whether_it_used_the_table() {
    let mut decoder = Decoder::default();
    let seen = decoder
        .decode(&[0x82, 0x00, 1, b'a', 2, b'b', b'c'], |_| {})
        .unwrap();
    assert_eq!(
        seen,
        Block {
            fields: 2,
            list_size: 10 + 32 + 3 + 32,
            stateless: true
        }
    );
    let with_insertion = &[0x40, 1, b'a', 0];
    assert!(!decoder.decode(with_insertion, |_| {}).unwrap().stateless);
    // nginx inserts into the table of a client that allows none
    decoder.allow_table_size(0);
    assert!(decoder.decode(with_insertion, |_| {}).unwrap().stateless);
    assert!(decoder.decode(&[0xbe], |_| {}).is_err());
}

fn field() -> impl Strategy<Value = (Vec<u8>, Vec<u8>, Indexing)> {
    let name = prop_oneof![
        Just(b":path".to_vec()),
        Just(b"cookie".to_vec()),
        Just(b"x-long-name".to_vec()),
        vec(any::<u8>(), 0..6),
    ];
    let value = prop_oneof![
        Just(b"/".to_vec()),
        vec(any::<u8>(), 0..20),
        vec(32..127u8, 0..60)
    ];
    let indexing = prop_oneof![2 => Just(Indexing::Incremental), 1 => Just(Indexing::Without), 1 => Just(Indexing::Never)];
    (name, value, indexing)
}

proptest! {
    #[test]
    fn whatever_is_encoded_comes_back(blocks in vec((vec(field(), 0..8), proptest::option::of(0..300u32)), 1..8)) {
        let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
        for (fields, resize) in &blocks {
            if let Some(size) = resize {
                encoder.resize(*size);
            }
            let mut bytes = Vec::new();
            encoder.begin(&mut bytes);
            for (name, value, indexing) in fields {
                encoder.encode(name, value, *indexing, &mut bytes);
            }
            let mut at = 0;
            let seen = decoder.decode(&bytes, |field| {
                let (name, value, indexing) = &fields[at];
                assert_eq!((field.name, field.value), (name.as_slice(), value.as_slice()));
                assert_eq!(field.sensitive, *indexing == Indexing::Never);
                at += 1;
            }).unwrap();
            prop_assert_eq!(seen.fields, fields.len());
        }
    }

    #[test]
    fn arbitrary_blocks_never_panic(blocks in vec(vec(any::<u8>(), 0..64), 0..4)) {
        let mut decoder = Decoder::new(4096);
        for block in &blocks {
            let mut size = 0;
            if let Ok(seen) = decoder.decode(block, |field| size += field.name.len() + field.value.len() + 32) {
                prop_assert_eq!(seen.list_size, size);
            }
        }
    }
}
