//! Receive timestamps of the kernel, where the platform has them: when the last segment of a read
//! reached the socket.

use crate::Stream;
use std::io;

/// Makes the kernel record when this TCP socket receives data; `false` if it cannot, which the
/// caller reports.
pub fn enable(stream: &Stream) -> bool {
    #[cfg(target_os = "linux")]
    {
        intact_sys::timestamps::enable(stream).is_ok()
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = stream;
        false
    }
}

/// Reads from the stream. Returns the number of bytes, and the timestamp of their last segment in
/// nanoseconds of CLOCK_REALTIME if there is one.
///
/// # Errors
/// Those of recvmsg(2).
#[inline]
pub fn receive(stream: &Stream, buffer: &mut [u8]) -> io::Result<(usize, Option<u64>)> {
    #[cfg(target_os = "linux")]
    {
        intact_sys::timestamps::receive(stream, buffer)
    }
    #[cfg(not(target_os = "linux"))]
    {
        use std::io::Read;
        let mut stream = stream;
        Ok((stream.read(buffer)?, None))
    }
}
