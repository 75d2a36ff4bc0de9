//! The examples of RFC 7541 appendix C. Our decoder reads them, and our encoder writes those with
//! Huffman strings byte for byte.

use intact_wire::h2::hpack::{Decoder, Encoder, Indexing};

type Fields = &'static [(&'static str, &'static str)];

const REQUESTS: [Fields; 3] = [
    &[
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "www.example.com"),
    ],
    &[
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "www.example.com"),
        ("cache-control", "no-cache"),
    ],
    &[
        (":method", "GET"),
        (":scheme", "https"),
        (":path", "/index.html"),
        (":authority", "www.example.com"),
        ("custom-key", "custom-value"),
    ],
];

const RESPONSES: [Fields; 3] = [
    &[
        (":status", "302"),
        ("cache-control", "private"),
        ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
        ("location", "https://www.example.com"),
    ],
    &[
        (":status", "307"),
        ("cache-control", "private"),
        ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
        ("location", "https://www.example.com"),
    ],
    &[
        (":status", "200"),
        ("cache-control", "private"),
        ("date", "Mon, 21 Oct 2013 20:13:22 GMT"),
        ("location", "https://www.example.com"),
        ("content-encoding", "gzip"),
        (
            "set-cookie",
            "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
        ),
    ],
];

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex
        .bytes()
        .filter_map(|b| char::from(b).to_digit(16))
        .map(|d| d as u8)
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

fn decode(decoder: &mut Decoder, block: &[u8]) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    decoder
        .decode(block, |field| {
            fields.push((text(field.name), text(field.value)));
        })
        .unwrap();
    fields
}

fn check_decoding(table_size: u32, blocks: [&str; 3], expected: [Fields; 3]) {
    let mut decoder = Decoder::default();
    decoder.allow_table_size(table_size);
    for (block, expected) in blocks.iter().zip(expected) {
        let expected: Vec<_> = expected
            .iter()
            .map(|&(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        assert_eq!(decode(&mut decoder, &bytes(block)), expected);
    }
}

fn check_encoding(table_size: u32, fields: [Fields; 3], expected: [&str; 3]) {
    let mut encoder = Encoder::default();
    encoder.resize(table_size);
    encoder.begin(&mut Vec::new()); // the examples agree on the table size before
    for (fields, expected) in fields.iter().zip(expected) {
        let mut block = Vec::new();
        encoder.begin(&mut block);
        for (name, value) in *fields {
            encoder.encode(
                name.as_bytes(),
                value.as_bytes(),
                Indexing::Incremental,
                &mut block,
            );
        }
        assert_eq!(block, bytes(expected));
    }
}

const C_4: [&str; 3] = [
    "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
    "8286 84be 5886 a8eb 1064 9cbf",
    "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
];

const C_6: [&str; 3] = [
    "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
    "4883 640e ffc1 c0bf",
    "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
];

#[test]
fn c_2_single_fields_of_every_representation() {
    let mut decoder = Decoder::default();
    let one = |decoder: &mut Decoder, hex| decode(decoder, &bytes(hex)).pop().unwrap();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let indexed = "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572";
    assert_eq!(
        one(&mut decoder, indexed),
        pair("custom-key", "custom-header")
    );
    assert_eq!(one(&mut decoder, "be"), pair("custom-key", "custom-header"));
    assert_eq!(
        one(&mut decoder, "040c 2f73 616d 706c 652f 7061 7468"),
        pair(":path", "/sample/path")
    );
    assert_eq!(one(&mut decoder, "82"), pair(":method", "GET"));
    let mut sensitive = false;
    let never = bytes("1008 7061 7373 776f 7264 0673 6563 7265 74");
    let seen = decoder
        .decode(&never, |field| {
            sensitive = field.sensitive && field.value == b"secret";
        })
        .unwrap();
    assert!(sensitive && seen.stateless);
    assert_eq!(seen.list_size, "passwordsecret".len() + 32);
}

#[test]
fn c_3_requests_without_huffman() {
    let blocks = [
        "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "8286 84be 5808 6e6f 2d63 6163 6865",
        "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
    ];
    check_decoding(4096, blocks, REQUESTS);
}

#[test]
fn c_4_requests_with_huffman() {
    check_decoding(4096, C_4, REQUESTS);
    check_encoding(4096, REQUESTS, C_4);
}

#[test]
fn c_5_responses_without_huffman_and_with_evictions() {
    let blocks = [
        "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "4803 3330 37c1 c0bf",
        "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31",
    ];
    check_decoding(256, blocks, RESPONSES);
}

#[test]
fn c_6_responses_with_huffman_and_evictions() {
    check_decoding(256, C_6, RESPONSES);
    check_encoding(256, RESPONSES, C_6);
}
