//! Read buffers of one thread: a connection has one only while it has bytes that are not dealt
//! with, so that an idle one costs none.

use std::cell::RefCell;
use std::ops::Deref;
use std::rc::Rc;

/// Bytes read at a time.
const READ: usize = 32 * 1024;
/// Buffers that are kept while no connection has them.
const KEPT: usize = 16;

/// The buffers that no connection has.
#[derive(Default)]
pub(crate) struct ReadBuffers(RefCell<Vec<Vec<u8>>>);

impl ReadBuffers {
    /// A buffer with room for a read; it comes back when it is dropped.
    pub(crate) fn take(self: &Rc<ReadBuffers>) -> ReadBuffer {
        let kept = self.0.borrow_mut().pop();
        ReadBuffer {
            room: kept.unwrap_or_else(|| vec![0; READ]),
            filled: 0,
            pool: self.clone(),
        }
    }
}

/// What was read.
pub(crate) struct ReadBuffer {
    room: Vec<u8>,
    filled: usize,
    pool: Rc<ReadBuffers>,
}

impl ReadBuffer {
    /// Reads into it by `read`, which says how many bytes that were.
    pub(crate) fn fill<E>(
        &mut self,
        read: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(), E> {
        self.filled = read(&mut self.room)?;
        Ok(())
    }

    /// Whether more may have been there than fitted.
    pub(crate) fn is_full(&self) -> bool {
        self.filled == self.room.len()
    }

    /// Appends what was read after it.
    pub(crate) fn append(&mut self, more: &ReadBuffer) {
        self.room.truncate(self.filled);
        self.room.extend_from_slice(more);
        self.filled = self.room.len();
    }
}

impl Deref for ReadBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.room[..self.filled]
    }
}

impl Drop for ReadBuffer {
    fn drop(&mut self) {
        let mut kept = self.pool.0.borrow_mut();
        if kept.len() < KEPT {
            let mut room = std::mem::take(&mut self.room);
            room.resize(READ, 0);
            kept.push(room);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_whole_and_a_limited_number_is_kept() {
        let pool = Rc::new(ReadBuffers::default());
        let mut first = pool.take();
        first
            .fill(|room| {
                room[..2].copy_from_slice(b"PR");
                Ok::<_, ()>(2)
            })
            .unwrap();
        let mut more = pool.take();
        more.fill(|room| {
            room.fill(b'I');
            Ok::<_, ()>(room.len())
        })
        .unwrap();
        assert!(more.is_full());
        first.append(&more);
        assert_eq!((first.len(), &first[..3]), (READ + 2, &b"PRI"[..]));
        drop((first, more));
        let all: Vec<ReadBuffer> = (0..2 * KEPT).map(|_| pool.take()).collect();
        assert!(
            all.iter()
                .all(|one| one.is_empty() && one.room.len() == READ)
        );
        drop(all);
        assert_eq!(pool.0.borrow().len(), KEPT);
    }
}
