//! Mounts that are one test's alone. They need root.

/// Gives this thread, and what it starts, mounts of its own.
pub fn own_mounts() {
    use rustix::mount::MountPropagationFlags;
    #[expect(unsafe_code, reason = "no descriptor table is unshared")]
    // SAFETY: unshare(2) with CLONE_NEWNS alone takes nothing away from this thread but its sharing of working directory and root.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNS) }.expect("mounts of its own");
    rustix::mount::mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).expect("nobody else's mounts");
}
