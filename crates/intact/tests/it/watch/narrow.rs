//! Programs that speak to the kernel as 32-bit ones do, 64-bit ones among them: they run as alone,
//! and their connections are counted and said to be unwatched.

use super::watch;
use crate::peers::program;
use crate::program::Server;
use std::process::Command;

#[test]
fn connects_of_32_bit_programs_are_left_alone_and_counted() {
    let Some(gcc) = program("gcc", "watch 32-bit programs") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("narrow.c");
    std::fs::write(&source, include_str!("narrow.c")).unwrap();
    for (width, class) in [("-m32", 1), ("-m64", 2)] {
        let alone = Server::start(&[]);
        let server = Server::start(&[]);
        let [alone_client, client] = [&alone, &server].map(|server| {
            let port = server.plain_port();
            let built = folder.path().join(format!("client{width}-{port}"));
            // no library is linked, so that none for 32 bits is needed
            let status = Command::new(&gcc)
                .args([width, "-nostdlib", "-static", "-no-pie", "-O1"])
                .args(["-fno-stack-protector", &format!("-DPORT={port}"), "-o"])
                .args([&built, &source])
                .status();
            assert!(status.unwrap().success(), "{width}");
            built
        });
        let class_of_file = std::fs::read(&client).unwrap()[4];
        assert_eq!(class_of_file, class, "{width}");
        let unwatched = Command::new(&alone_client).output().unwrap();
        assert_eq!(unwatched.stdout, b"HTTP/1.1 200 OK\nHTTP/1.1 200 OK\n");
        assert_eq!(unwatched.status.code(), Some(7));
        let command = [client.to_str().unwrap()];
        let (out, document) = watch(&[], &command);
        let result = |out: &std::process::Output| (out.stdout.clone(), out.status.code());
        assert_eq!(result(&out), result(&unwatched), "{width}: {out:?}");
        assert_eq!(
            document["caveats"],
            serde_json::json!([{
                "id": "unwatched-32-bits",
                "message": "2 connections were not watched: system calls of 32-bit programs made them",
                "incomplete": true,
            }]),
            "{width}"
        );
        let page = crate::program::intact(&["watch", "--", command[0]]);
        let page = String::from_utf8(page.stderr).unwrap();
        for words in ["Nothing was observed", "2 connections were not watched"] {
            assert!(page.contains(words), "{width}: {page}");
        }
        let cell = &server.end()["cells"][0];
        assert_eq!(cell["connections"]["opened"], 4, "{width}");
    }
}
