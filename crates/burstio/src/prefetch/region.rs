//! Memory that can be handed to another process by descriptor: a memfd and its mapping.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::{NonNull, null_mut};

use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// A mapping of a memfd. It has no name in any file system, so it ends with its last user.
pub struct Region {
    descriptor: OwnedFd,
    base: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping stays at its address until it is dropped; who may write where is decided by
// whoever hands out ranges of it.
unsafe impl Send for Region {}
// SAFETY: see above.
unsafe impl Sync for Region {}

impl Region {
    /// New memory of `length` bytes, zero, taken from the system when it is first written.
    pub fn new(length: usize) -> io::Result<Self> {
        let length = length.max(1);
        let descriptor = memfd_create("burstio", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&descriptor, length as u64)?;
        // Nobody who is given it can shrink it under a mapping.
        fcntl_add_seals(&descriptor, SealFlags::SHRINK | SealFlags::GROW)?;
        Self::map(descriptor, length, ProtFlags::READ | ProtFlags::WRITE)
    }

    /// Memory that another process made, to be read only.
    pub fn of_another(descriptor: OwnedFd) -> io::Result<Self> {
        let length = rustix::fs::fstat(&descriptor)?.st_size as usize;
        Self::map(descriptor, length, ProtFlags::READ)
    }

    fn map(descriptor: OwnedFd, length: usize, access: ProtFlags) -> io::Result<Self> {
        // SAFETY: a fresh address, chosen by the kernel.
        let base = unsafe { mmap(null_mut(), length, access, MapFlags::SHARED, &descriptor, 0) }?;
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self {
            descriptor,
            base,
            length,
        })
    }

    /// A descriptor of the same memory through which nobody can write.
    pub fn read_only(&self) -> io::Result<OwnedFd> {
        let path = format!(
            "/proc/self/fd/{}",
            std::os::fd::AsRawFd::as_raw_fd(&self.descriptor)
        );
        Ok(rustix::fs::open(
            path,
            OFlags::RDONLY | OFlags::CLOEXEC,
            Mode::empty(),
        )?)
    }

    /// Bytes mapped.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Where `offset` lies in this process. Panics where a range would leave the mapping.
    pub fn at(&self, offset: usize, length: usize) -> NonNull<u8> {
        assert!(
            offset
                .checked_add(length)
                .is_some_and(|end| end <= self.length)
        );
        // SAFETY: within the mapping, by the line above.
        unsafe { self.base.add(offset) }
    }
}

impl AsFd for Region {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: mapped by us with this length; who has a pointer into it holds the region too.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.length) };
    }
}
