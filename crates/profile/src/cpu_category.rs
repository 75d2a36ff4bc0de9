//! Classifies a stack by its function names: name lookup, TLS, sockets, readiness, other.
//!
//! A stack has one category, although a lookup sends packets and a TLS write calls the socket. The
//! lookup claims all frames that it calls. Packet work in the kernel counts as sockets for any
//! caller.

use crate::profile::Frame;

/// What a stack was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CpuCategory {
    /// A name lookup, including its packets.
    Dns,
    /// TLS: handshakes, certificates, encryption.
    Tls,
    /// Sockets and packets, in the kernel.
    Socket,
    /// Waiting in the kernel for descriptors to become ready (epoll, poll, select).
    Readiness,
    /// Anything else.
    Other,
}

/// Functions of lookups: glibc, musl, c-ares, Go, Node.
const DNS: [&str; 14] = [
    "getaddrinfo",
    "gaih_inet",
    "gethostby",
    "getnameinfo",
    "res_n",
    "__res_",
    "_nss_dns",
    "_nss_resolve",
    "__lookup_name",
    "__dns_",
    "ares_",
    "net.(*Resolver)",
    "net.cgoLookup",
    "uv__getaddrinfo",
];
/// Libraries that only do lookups.
const DNS_FILES: [&str; 4] = ["libresolv", "libnss_dns", "libnss_resolve", "libcares"];

/// Functions of TLS and its arithmetic in programs that link them statically: OpenSSL and its
/// forks, Go, rustls, ring, aws-lc.
const TLS: [&str; 35] = [
    "SSL_",
    "ssl_",
    "ssl3_",
    "tls_process_",
    "tls_construct_",
    "tls_post_",
    "tls1",
    "dtls",
    "ossl_",
    "OSSL_",
    "EVP_",
    "X509",
    "x509_",
    "ASN1_",
    "asn1_",
    "d2i_",
    "BN_",
    "bn_",
    "EC_",
    "ecp_",
    "CRYPTO_",
    "aes_",
    "aesni_",
    "gcm_",
    "sha256_block",
    "sha512_block",
    "ChaCha20",
    "Poly1305",
    "x25519",
    "crypto/",
    "vendor/golang.org/x/crypto",
    "rustls::",
    "aws_lc_",
    "ring_core_",
    "webpki::",
];
/// Libraries of TLS and of its arithmetic.
const TLS_FILES: [&str; 15] = [
    "libssl",
    "libcrypto",
    "libgnutls",
    "libnettle",
    "libhogweed",
    "libgmp",
    "libnss3",
    "libssl3",
    "libsoftokn3",
    "libfreebl",
    "libmbed",
    "libwolfssl",
    "_ssl.",
    "libp11-kit",
    "libtasn1",
];

/// Functions of the kernel that work on sockets and packets.
const SOCKET: [&str; 25] = [
    "tcp_",
    "__tcp_",
    "udp_",
    "udpv6_",
    "inet_",
    "inet6_",
    "__inet",
    "ip_",
    "__ip_",
    "ip6_",
    "ipv6_",
    "sock_",
    "__sock",
    "sk_",
    "skb_",
    "__skb",
    "net_rx_action",
    "__netif",
    "netif_",
    "process_backlog",
    "__sys_send",
    "__sys_recv",
    "__sys_connect",
    "__sys_accept",
    "__sys_socket",
];
/// Functions of the kernel that wait for readiness.
const READINESS: [&str; 6] = [
    "do_epoll_",
    "ep_",
    "do_sys_poll",
    "do_poll",
    "do_select",
    "__x64_sys_epoll",
];

impl CpuCategory {
    /// The category of these frames, the innermost first.
    pub(crate) fn of(frames: &[Frame]) -> CpuCategory {
        let mut kernel = None;
        let mut tls = false;
        for frame in frames {
            match frame {
                Frame::Kernel(Some(name)) if begins(name, &SOCKET) => {
                    kernel = Some(CpuCategory::Socket);
                }
                Frame::Kernel(Some(name)) if begins(name, &READINESS) => {
                    kernel = kernel.or(Some(CpuCategory::Readiness));
                }
                Frame::Kernel(_) => {}
                Frame::File(file, name) => {
                    let name = name.as_deref().unwrap_or("");
                    if begins(file, &DNS_FILES) || begins(name, &DNS) {
                        return CpuCategory::Dns;
                    }
                    tls |= begins(file, &TLS_FILES) || begins(name, &TLS);
                }
                Frame::Made(_) => {}
            }
        }
        match kernel {
            Some(work) => work,
            None if tls => CpuCategory::Tls,
            None => CpuCategory::Other,
        }
    }
}

fn begins(name: &str, beginnings: &[&str]) -> bool {
    beginnings
        .iter()
        .any(|beginning| name.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(name: &str) -> Frame {
        Frame::Kernel(Some(name.into()))
    }

    fn file(file: &str, name: &str) -> Frame {
        Frame::File(file.into(), Some(name.into()))
    }

    #[test]
    fn encryption_is_tls_and_its_write_is_socket_work() {
        let write = file("libssl.so.3", "SSL_write");
        let cipher = Frame::File("libcrypto.so.3".into(), None);
        assert_eq!(CpuCategory::of(&[cipher, write.clone()]), CpuCategory::Tls);
        let packets = [kernel("tcp_sendmsg"), kernel("__sys_sendto"), write];
        assert_eq!(CpuCategory::of(&packets), CpuCategory::Socket);
    }

    #[test]
    fn a_lookup_owns_its_packets() {
        let stack = [
            kernel("udp_sendmsg"),
            file("libc.so.6", "__res_context_send"),
            file("libc.so.6", "getaddrinfo"),
        ];
        assert_eq!(CpuCategory::of(&stack), CpuCategory::Dns);
    }

    #[test]
    fn waiting_for_readiness_differs_from_packets_that_arrive_meanwhile() {
        let wait = kernel("do_epoll_wait");
        assert_eq!(
            CpuCategory::of(std::slice::from_ref(&wait)),
            CpuCategory::Readiness
        );
        assert_eq!(
            CpuCategory::of(&[kernel("tcp_v4_rcv"), wait]),
            CpuCategory::Socket
        );
    }

    #[test]
    fn names_of_other_code_are_other_work() {
        let stack = [
            file("node", "v8::internal::Heap::Scavenge"),
            Frame::Made(None),
        ];
        assert_eq!(CpuCategory::of(&stack), CpuCategory::Other);
        assert_eq!(CpuCategory::of(&[]), CpuCategory::Other);
        assert_eq!(
            CpuCategory::of(&[kernel("do_user_addr_fault")]),
            CpuCategory::Other
        );
    }
}
