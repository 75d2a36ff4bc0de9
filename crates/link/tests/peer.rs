//! What the tests run: the keeper of their links, and clients and servers on its sides.
#![allow(clippy::print_stdout, reason = "tests read it")]

use intact_link::{Link, LinkEnd};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["keep"] => intact_link::keep(),
        ["connect", address, count] => connect(address, count),
        ["serve", address] => serve(address),
        ["ask", address] => ask(address),
        ["fetch", address, bytes] => fetch(address, bytes),
        ["mirror", address] => mirror(address),
        ["ways", address, count] => ways(address, count),
        ["flood", address, count] => flood(address, count),
        ["resolve", name] => resolve(name),
        ["own", spec] => own(spec),
        ["hold"] => hold(),
        ref other => panic!("unknown: {other:?}"),
    }
}

fn number(word: &str) -> usize {
    word.parse().expect("a number")
}

/// Connects `count` times and prints each time in us.
fn connect(address: &str, count: &str) -> io::Result<()> {
    for _ in 0..number(count) {
        let start = Instant::now();
        match TcpStream::connect(address) {
            Ok(_) => println!("{}", start.elapsed().as_micros()),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                println!("{}", start.elapsed().as_micros());
            }
            Err(error) => println!("{:?}", error.kind()),
        }
    }
    Ok(())
}

/// Says "ready", then answers each line "N" with N bytes, each connection on a thread.
fn serve(address: &str) -> io::Result<()> {
    let listener = TcpListener::bind(address)?;
    println!("ready");
    for stream in listener.incoming() {
        let stream = stream?;
        std::thread::spawn(move || -> io::Result<()> {
            stream.set_nodelay(true)?;
            let mut out = stream.try_clone()?;
            for line in BufReader::new(stream).lines() {
                out.write_all(&vec![b'x'; number(&line?)])?;
            }
            Ok(())
        });
    }
    Ok(())
}

/// One connection; for each line of standard input ("N" bytes) asks for that and prints the
/// outcome: "ok" and us, or the error.
fn ask(address: &str) -> io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(3)))?;
    println!("connected");
    for line in io::stdin().lines() {
        let line = line?;
        let mut answer = vec![0; number(&line)];
        let start = Instant::now();
        let done = stream
            .write_all(format!("{line}\n").as_bytes())
            .and_then(|()| stream.read_exact(&mut answer));
        match done {
            Ok(()) => println!("ok {}", start.elapsed().as_micros()),
            Err(error) => println!("{:?}", error.kind()),
        }
    }
    Ok(())
}

/// Fetches this number of bytes on a new connection and prints bytes per second.
fn fetch(address: &str, bytes: &str) -> io::Result<()> {
    let address: SocketAddr = address.parse().expect("an address");
    let mut stream = TcpStream::connect(address)?;
    let start = Instant::now();
    stream.write_all(format!("{bytes}\n").as_bytes())?;
    let mut buffer = vec![0; 1 << 20];
    let (mut got, wanted) = (0, number(bytes));
    while got < wanted {
        match stream.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => got += count,
        }
    }
    println!("{:.0}", got as f64 / start.elapsed().as_secs_f64());
    Ok(())
}

/// Nanoseconds of the clock that all processes of this machine share.
fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Says "ready", then answers each datagram with the time at which it came.
fn mirror(address: &str) -> io::Result<()> {
    let socket = UdpSocket::bind(address)?;
    println!("ready");
    let mut got = [0; 64];
    loop {
        let (_, from) = socket.recv_from(&mut got)?;
        socket.send_to(&now().to_be_bytes(), from)?;
    }
}

/// Sends datagrams one by one to a mirror and prints the us up and the us down of each.
fn ways(address: &str, count: &str) -> io::Result<()> {
    let socket = UdpSocket::bind("198.18.0.1:0")?;
    socket.connect(address)?;
    for _ in 0..number(count) {
        let mut there = [0; 8];
        let start = now();
        socket.send(&[0; 8])?;
        socket.recv(&mut there)?;
        let (there, back) = (u64::from_be_bytes(there), now());
        println!("{}\n{}", (there - start) / 1000, (back - there) / 1000);
    }
    Ok(())
}

/// Sends this number of datagrams.
fn flood(address: &str, count: &str) -> io::Result<()> {
    let socket = UdpSocket::bind("198.18.0.1:0")?;
    for _ in 0..number(count) {
        socket.send_to(&[0; 100], address)?;
    }
    Ok(())
}

/// Prints the addresses of a name, or what looking it up came to.
fn resolve(name: &str) -> io::Result<()> {
    use std::net::ToSocketAddrs;
    match (name, 80).to_socket_addrs() {
        Ok(all) => all.for_each(|address| println!("{}", address.ip())),
        Err(_) => println!("unknown"),
    }
    Ok(())
}

/// Makes a link of its own with a program on each side that starts another in the background,
/// prints the median round trip in us, and holds it until it is killed.
fn own(spec: &str) -> io::Result<()> {
    let program = std::env::current_exe()?;
    let helper = || {
        let mut helper = Command::new(&program);
        helper.arg("keep");
        helper
    };
    let spec = spec.parse().map_err(io::Error::other)?;
    let link = match Link::start(&spec, None, helper) {
        Ok(link) => link,
        Err(error) => {
            println!("{error}");
            return Ok(());
        }
    };
    let mut children = Vec::new();
    for side in [LinkEnd::Client, LinkEnd::Server] {
        let mut command = Command::new("sh");
        let program = program.display();
        command
            // one in the foreground, one that leaves its session
            .args([
                "-c",
                &format!("setsid {program} hold & exec {program} hold"),
            ])
            .stdin(Stdio::null());
        link.enter(side, &mut command);
        children.push(command.spawn()?);
    }
    println!("{:.0}", link.facts().round_trip.p50_ms * 1e3);
    for child in &mut children {
        child.wait()?;
    }
    Ok(())
}

/// Says "held" and stays.
fn hold() -> io::Result<()> {
    println!("held");
    loop {
        std::thread::park();
    }
}
