//! An emulated parallel file system: ordinary directories through FUSE, each operation at a cost.
//!
//! It is what staging and prefetching are measured and tested against where there is no Lustre, so
//! it must not be the bound: an operation that waits takes no thread ([`later`]).

mod attributes;
pub mod costs;
mod extended;
pub mod later;
mod listing;
mod names;
mod nodes;
mod open;
mod serving;
mod status;

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread::JoinHandle;

use fuser::{Config, MountOption, Session, SessionACL};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};

pub use costs::Emulation;
use nodes::Nodes;
use serving::{Served, Stall};

/// Device name and sub-type of its mounts: what proves it is emulated.
pub const SOURCE: &str = "burstlab-pfs";
/// Operations on the exported file systems at once. Those that wait for their time take none.
const THREADS: usize = 32;

/// A directory to be shown: its name at the top of the mount, where it lies, whether read-only.
pub type Shown = (String, PathBuf, bool);

/// A mounted one.
pub struct Emulated {
    mountpoint: PathBuf,
    stall: Arc<Stall>,
}

/// Its threads; they end when it is unmounted.
pub struct Serving(JoinHandle<io::Result<()>>);

impl Emulated {
    /// Mount at `mountpoint` and serve in threads of its own.
    ///
    /// Fails where it can't be mounted (without root that takes `fusermount3`), or an export can't
    /// be opened.
    pub fn mount(
        mountpoint: &Path,
        exports: &[Shown],
        emulation: Emulation,
    ) -> io::Result<(Self, Serving)> {
        let stall = Arc::new(Stall::default());
        let nodes = Nodes::new(exports)?;
        let (served, notifier) = Served::new(nodes, emulation, stall.clone())?;
        let session = if rustix::process::geteuid().is_root() {
            Session::from_fd(served, mount(mountpoint)?, SessionACL::All, config())?
        } else {
            Session::new(served, mountpoint, &config())?
        };
        let _ = notifier.set(session.notifier()); // once, here
        let serving = std::thread::Builder::new()
            .name("serving".into())
            .spawn(move || session.run())?;
        let mountpoint = mountpoint.to_owned();
        Ok((Self { mountpoint, stall }, Serving(serving)))
    }

    /// Unmount, though files be open and operations wait.
    pub fn unmount(&self) -> io::Result<()> {
        match rustix::mount::unmount(&self.mountpoint, UnmountFlags::DETACH) {
            Err(Errno::PERM) => unmount_as_user(&self.mountpoint),
            done => Ok(done?),
        }
    }

    /// Let all operations wait, or go on; returns whether they wait now.
    pub fn toggle_stall(&self) -> bool {
        self.stall.toggle()
    }
}

impl Serving {
    /// Wait until it is unmounted.
    pub fn wait(self) -> io::Result<()> {
        match self.0.join() {
            Ok(ended) => ended,
            Err(_) => Err(io::Error::other("a thread that serves has panicked")),
        }
    }
}

fn config() -> Config {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(SOURCE.into()),
        MountOption::Subtype(SOURCE.into()),
        MountOption::NoSuid,
        MountOption::NoDev,
        MountOption::DefaultPermissions,
    ];
    config.n_threads = Some(THREADS);
    config
}

/// mount(2), for root; as fuser does it, which leaves the sub-type out.
fn mount(mountpoint: &Path) -> io::Result<OwnedFd> {
    let device = open("/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let options = format!(
        "fd={},rootmode=40000,user_id=0,group_id=0,default_permissions,allow_other",
        device.as_raw_fd()
    );
    let options = CString::new(options).expect("digits and words have no NUL");
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    let kind = format!("fuse.{SOURCE}");
    rustix::mount::mount(SOURCE, mountpoint, kind, flags, &*options)?;
    Ok(device)
}

fn unmount_as_user(mountpoint: &Path) -> io::Result<()> {
    let mut command = Command::new("fusermount3");
    match command.args(["-u", "-z", "--"]).arg(mountpoint).status()? {
        done if done.success() => Ok(()),
        done => Err(io::Error::other(format!("fusermount3: {done}"))),
    }
}
