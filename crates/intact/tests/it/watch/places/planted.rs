// Opens connections at known lines: `// CASE=N` at its end says which case opens how many there.
use std::io::{Read, Write};
use std::net::TcpStream;

fn speak(mut stream: TcpStream) {
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
}

fn call(port: u16) {
    speak(TcpStream::connect(("127.0.0.1", port)).unwrap()); // sync=3 thread=6
}

struct Shop(u16);

impl Shop {
    fn pay(&self) {
        let stream = TcpStream::connect(("127.0.0.1", self.0)); // method=2
        speak(stream.unwrap());
    }
}

fn wrapped(function: impl Fn()) -> impl Fn() {
    move || function()
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let port: u16 = words[1].parse().unwrap();
    match &*words[2] {
        "sync" => (0..3).for_each(|_| call(port)),
        "method" => (0..2).for_each(|_| Shop(port).pay()),
        "closure" => {
            let open = wrapped(wrapped(move || {
                speak(TcpStream::connect(("127.0.0.1", port)).unwrap()); // closure=2
            }));
            open();
            open();
        }
        "boxed" => {
            let open: Box<dyn Fn() -> TcpStream> = Box::new(move || {
                TcpStream::connect(("127.0.0.1", port)).unwrap() // boxed=2
            });
            speak(open());
            speak(open());
        }
        "thread" => {
            let every = (0..3).map(|_| std::thread::spawn(move || (0..2).for_each(|_| call(port))));
            let every: Vec<_> = every.collect();
            every.into_iter().for_each(|one| one.join().unwrap());
        }
        _ => {}
    }
}
