//! The allocator: without memory recant ends with a message and status 7 instead of an abort. What it had begun is as after a kill: the next
//! verb that changes something undoes or settles it.

#![allow(unsafe_code, reason = "an allocator is unsafe to write, and write(2) and _exit(2) alone need no memory")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU32, Ordering};

/// The allocator of the system, which ends a program where it has nothing to give.
struct ExitingAllocator;

#[global_allocator]
static MEMORY: ExitingAllocator = ExitingAllocator;

/// The process that ends so. A child that came of it aborts: its status would be taken for that of the command.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// The exit status of an act that can be neither finished nor undone now; `face::exit` has the others.
const STATUS: i32 = 7;

const WHY: &[u8] =
    b"recant: out of memory: the next command that changes something undoes or finishes\n        what this one had begun\n";

/// Lets this process, the program recant, end so from here on.
pub fn tell_when_short() {
    OWNER.store(std::process::id(), Ordering::Relaxed);
}

/// Passes on what the system gave; ends the program if that is nothing.
fn or_exit(memory: *mut u8) -> *mut u8 {
    if memory.is_null() && OWNER.load(Ordering::Relaxed) == std::process::id() {
        // SAFETY: the bytes are static, and both calls allocate nothing and touch no memory of ours.
        unsafe {
            libc::write(2, WHY.as_ptr().cast(), WHY.len());
            libc::_exit(STATUS);
        }
    }
    memory
}

// SAFETY: each call is passed on to the system's allocator with the same arguments, under the same contract.
unsafe impl GlobalAlloc for ExitingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of this very function.
        or_exit(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        or_exit(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        or_exit(unsafe { System.realloc(memory, layout, size) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}
