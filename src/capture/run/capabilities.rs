//! The capabilities that are dropped before the command starts.

use std::io;

use rustix::io::Errno;
use rustix::thread::{CapabilitySet, CapabilitySets};

/// Those by which root could get out of its run, or change for real what no rollback brings back; the rest stays, for chown, mknod, chroot,
/// network and the like.
const DROPPED: CapabilitySet = CapabilitySet::SYS_ADMIN
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::SYS_MODULE)
    .union(CapabilitySet::SYS_RAWIO)
    .union(CapabilitySet::SYS_BOOT)
    .union(CapabilitySet::BPF)
    .union(CapabilitySet::PERFMON)
    // These could empty the kernel's log, and turn process accounting off: syslog(2), acct(2).
    .union(CapabilitySet::SYSLOG)
    .union(CapabilitySet::SYS_PACCT)
    // The clock, by `date -s` or `hwclock`.
    .union(CapabilitySet::SYS_TIME)
    .union(CapabilitySet::CHECKPOINT_RESTORE);

/// Drops the capabilities by which root could get out of its run.
pub fn drop_lead_out() -> io::Result<()> {
    drop_rights(DROPPED)
}

/// Drops capabilities for good: a program with file capabilities or setuid root can't get them back either.
pub fn drop_rights(dropped: CapabilitySet) -> io::Result<()> {
    let sets = rustix::thread::capabilities(None)?;
    for bit in 0..u64::BITS {
        let one = CapabilitySet::from_bits_retain(1 << bit);
        if dropped.intersects(one) {
            match rustix::thread::remove_capability_from_bounding_set(one) {
                Ok(()) => {}
                // Past the last one that this kernel has.
                Err(Errno::INVAL) => break,
                Err(error) => return Err(error.into()),
            }
        }
    }
    rustix::thread::clear_ambient_capability_set()?;
    let keep = |set: CapabilitySet| set.difference(dropped);
    Ok(rustix::thread::set_capabilities(
        None,
        CapabilitySets { effective: keep(sets.effective), permitted: keep(sets.permitted), inheritable: keep(sets.inheritable) },
    )?)
}
