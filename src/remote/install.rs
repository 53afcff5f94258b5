//! Installs this very binary on a far side that has no recant of this protocol: `~/.local/lib/recant/bin/<version>/recant`.
//!
//! It is whole or not there: copied beside its place, compared by SHA-256 there, run once, and renamed. Other versions are removed.
//!
//! The far side reports how much of the copy it has, however slow the line is: what was sent says nothing, as buffers here and in the
//! network take all of it long before. A mere sign that it is there does not count: a disk that hangs takes nothing more.

use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::connection::Connection;
use super::error::{mute, not_installed};
use super::install_path::{PLACE, VERSION};
use super::protocol::PROTOCOL;
use super::signals::Wire;
use super::ssh::Link;
use crate::error::{Error, Reason, shell_word};
use crate::remedy::{Remedy, shell};

/// The facts about a program's file that matter to another machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The processor, as uname(1) calls it.
    pub machine: String,
    /// True if it needs nothing else: no interpreter, which loads libraries.
    pub is_static: bool,
}

impl Program {
    /// Reads this process's own file. Errors: it cannot be read.
    pub fn of_this_process() -> io::Result<Self> {
        let mut file = std::fs::File::open(OWN)?;
        Self::read(&mut file)
    }

    /// Reads the headers of an ELF file (elf(5)) of 64 bits.
    fn read(file: &mut impl Read) -> io::Result<Self> {
        let mut head = Vec::new();
        file.take(64 << 10).read_to_end(&mut head)?;
        let at = |offset: usize, length: usize| head.get(offset..offset.checked_add(length)?);
        let number = |offset, length| -> Option<usize> {
            let bytes = at(offset, length)?;
            // In the byte order of this process, or the file could not run here.
            let fold = |sum: usize, byte: &u8| sum << 8 | usize::from(*byte);
            Some(if cfg!(target_endian = "little") { bytes.iter().rev().fold(0, fold) } else { bytes.iter().fold(0, fold) })
        };
        let garbled = || io::Error::new(io::ErrorKind::InvalidData, "it is not a 64-bit ELF file");
        if at(0, 5) != Some(b"\x7fELF\x02") {
            return Err(garbled());
        }
        let (table, size, count) = (number(32, 8), number(54, 2), number(56, 2));
        let (table, size, count) =
            table.zip(size).zip(count).map(|((table, size), count)| (table, size, count)).ok_or_else(garbled)?;
        let mut is_static = true;
        for n in 0..count {
            const PT_INTERP: usize = 3;
            let kind = table.checked_add(n * size).and_then(|offset| number(offset, 4)).ok_or_else(garbled)?;
            is_static &= kind != PT_INTERP;
        }
        Ok(Self { machine: std::env::consts::ARCH.into(), is_static })
    }
}

/// The reports of the shell that installs, each at the start of a line: [`text`] has it print them. It waits for `go`.
const WAITS: &str = "recant-install";
/// Bytes of the copy.
const HAS: &str = "recant-has";
/// A step after the copy.
const STEP: &str = "recant-step";
/// The reason why not, as one of the words of [`refused`].
const REFUSED: &str = "recant-refused";
const INSTALLED: &str = "recant-installed";

/// This process's own file, even if its name is another file's now.
const OWN: &str = "/proc/self/exe";

/// Installs it. Errors: the reason why it cannot be installed, with what to do by hand; the machine is not reached; a signal asked to end.
pub fn install(link: &Link) -> Result<(), Error> {
    let host = link.host();
    let not = |why: String, remedy: Remedy| not_installed(&host, why, remedy);
    let unread = |error| not(format!("{OWN}: {}", crate::error::reason(&error)), by_hand(&host, None));
    let program = Program::of_this_process().map_err(unread)?;
    if !program.is_static {
        let why = format!("{} is not a static build, and may not run elsewhere", own_name().display());
        return Err(not(why, shell("make static") + ", then use that one: " + by_hand(&host, None)));
    }
    let bytes = std::fs::read(OWN).map_err(unread)?;
    let hash: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    let mut wire = link.open(&text(&hash, beat(link.timeout)))?;
    let _listed = link.signals.list(Wire::to_ssh(wire.pid(), wire.patience.clone()));
    // A signal between two connections met no link.
    if let Some(asked) = wire.interrupted() {
        wire.patience.give_up();
        return Err(asked);
    }
    let (system, machine) = system_of(&mut wire, &host)?;
    if system != "Linux" || machine_of(&machine) != program.machine {
        let why =
            format!("it runs {system} on {machine}, and {} is built for Linux on {}", own_name().display(), program.machine);
        return Err(not(why, "build it for that machine, then: " + by_hand(&host, Some("recant"))));
    }
    let whole = bytes.len() as u64;
    let to = wire.ssh_stdin.take();
    // In a thread: if the far side takes no more of it, this side has to notice.
    std::thread::spawn(move || {
        let Some(mut to) = to else { return };
        // The far side reports the error.
        let _refused = to.write_all(b"go\n").and_then(|()| to.write_all(&bytes));
    });
    match copied(&mut wire, whole) {
        CopyOutcome::All => Ok(()),
        CopyOutcome::Refused(word) => {
            let (why, remedy) = refused(&word, &host);
            Err(not(why, remedy))
        }
        CopyOutcome::InPart { is_there } => Err(cut_off(&wire, &host, is_there)),
    }
}

/// The far side's operating system and processor, as uname(1) calls them.
fn system_of(wire: &mut Connection, host: &str) -> Result<(String, String), Error> {
    // Skips the output of login scripts.
    loop {
        let line = wire.line();
        if line.is_empty() {
            return Err(match wire.unanswered() {
                error if error.reason() == Some(&Reason::NoRecant) => not_installed(
                    host,
                    "its login shell runs no commands",
                    "give that user a login shell, or use another: -H USER@HOST".into(),
                ),
                error => error,
            });
        }
        let text = String::from_utf8_lossy(&line);
        let names = text.split_once(&format!("{WAITS} ")).and_then(|(_, names)| names.trim().split_once(' '));
        if let Some((system, machine)) = names.filter(|(system, _)| !system.is_empty()) {
            return Ok((system.into(), machine.into()));
        }
    }
}

fn cut_off(wire: &Connection, host: &str, is_there: bool) -> Error {
    match (wire.interrupted(), wire.patience.ran_out()) {
        (Some(asked), _) => asked,
        (None, Some(silence)) if is_there => {
            let why = format!("it answers, but the copy has not advanced for {} s: its disk may hang", silence.as_secs());
            let remedy = "remote.timeout (settings) sets how long that may take; or " + by_hand(host, None);
            not_installed(host, why, remedy)
        }
        (None, Some(silence)) => mute(host, silence),
        (None, None) => not_installed(host, "the connection ended meanwhile", by_hand(host, None)),
    }
}

/// The fate of the copy.
enum CopyOutcome {
    All,
    /// The far side's reason for refusing it.
    Refused(String),
    /// The connection ended, or was given up.
    InPart {
        /// True if it only sent signs that it is there, until the end.
        is_there: bool,
    },
}

/// Reads the far side's reports. Only progress ends its silence: more of the `whole` copy, or the next step.
fn copied(wire: &mut Connection, whole: u64) -> CopyOutcome {
    let mut progress = Progress::default();
    // One report without progress may have been on its way when the line was cut.
    let mut idle = 0;
    wire.patience.advanced();
    loop {
        let line = wire.line();
        if line.is_empty() {
            return CopyOutcome::InPart { is_there: idle > 1 };
        }
        let text = String::from_utf8_lossy(&line);
        if text.starts_with(INSTALLED) {
            return CopyOutcome::All;
        }
        if let Some(word) = text.strip_prefix(REFUSED) {
            // The far side no longer reads the rest of the copy.
            wire.is_told = true;
            return CopyOutcome::Refused(word.trim().to_owned());
        }
        if progress.advances(&text, whole) {
            wire.patience.advanced();
            idle = 0;
        } else {
            idle += 1;
        }
    }
}

/// The progress of the far side.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Progress {
    /// Bytes of the copy.
    size: u64,
    /// Steps after the copy: its hash, the disk, a first run.
    step: u64,
}

impl Progress {
    /// Takes in a report; true if it is progress. The number of such reports is limited, whatever the far side sends.
    fn advances(&mut self, line: &str, whole: u64) -> bool {
        const STEPS: u64 = 3;
        let number = |word: &str, most: u64| line.strip_prefix(word)?.trim().parse().ok().map(|number: u64| number.min(most));
        let before = *self;
        self.size = number(HAS, whole).map_or(self.size, |size| size.max(self.size));
        self.step = number(STEP, STEPS).map_or(self.step, |step| step.max(self.step));
        *self != before
    }
}

/// Seconds between two signs that the far side is there, as text for sleep(1): a quarter of the allowed silence, at most 1.
fn beat(timeout: Option<Duration>) -> &'static str {
    match timeout {
        Some(timeout) if timeout < Duration::from_secs(4) => "0.25",
        _ => "1",
    }
}

/// The far side's shell text. Waits for `go`; then copies beside the place, checks the hash, runs it once, renames. Meanwhile a background
/// process reports the size of the copy. It holds nothing open that the connection waits for. It ends with the shell, also if that is
/// killed, and then removes what is left. It keeps the directory's time recent: another call would remove an old one.
fn text(hash: &str, beat: &str) -> String {
    format!(
        "exec sh -c 'umask 077; echo {WAITS} $(uname -s) $(uname -m); read go || exit 1; \
         d=$HOME/{PLACE}; t=$d/.new-$$; \
         end() {{ kill $(cat \"$t/beat\" 2>/dev/null) 2>/dev/null; rm -rf \"$t\"; }}; \
         no() {{ end; echo {REFUSED} $1; exit 1; }}; \
         mkdir -p \"$t\" 2>/dev/null || no directory; \
         (while sleep {beat} >/dev/null && [ -d \"$t\" ]; do kill -0 $$ || {{ rm -rf \"$t\"; exit; }}; \
         touch \"$t\" >/dev/null; echo {HAS} $(wc -c <\"$t/recant\"); done) </dev/null 2>/dev/null & \
         {{ jobs -p >\"$t/beat\"; }} 2>/dev/null; \
         {{ cat >\"$t/recant\"; }} 2>/dev/null || no room; echo {STEP} 1; \
         s=$({{ sha256sum \"$t/recant\" || sha256 -r \"$t/recant\" || shasum -a 256 \"$t/recant\"; }} 2>/dev/null); s=${{s%% *}}; \
         [ -n \"$s\" ] || no hash; [ \"$s\" = {hash} ] || no copy; echo {STEP} 2; \
         chmod 755 \"$t/recant\" && sync \"$t/recant\" 2>/dev/null; echo {STEP} 3; \
         \"$t/recant\" far --speaks {PROTOCOL} >/dev/null 2>&1 || no run; \
         mkdir -p \"$d/{VERSION}\" && mv -f \"$t/recant\" \"$d/{VERSION}/recant\" || no directory; end; \
         for o in \"$d\"/*; do [ \"$o\" = \"$d/{VERSION}\" ] || rm -rf \"$o\"; done; \
         find \"$d\" -maxdepth 1 -name \".new-*\" -mmin +60 -exec rm -rf {{}} + 2>/dev/null; \
         echo {INSTALLED}'"
    )
}

fn refused(word: &str, host: &str) -> (String, Remedy) {
    let path = format!("~/{PLACE}");
    let elsewhere = "put it into PATH there: "
        + shell(format_args!("scp {} {host}:/tmp/recant &&", own_name().display()))
        + " "
        + shell(format_args!("ssh {host} sudo install /tmp/recant /usr/local/bin/"));
    match word {
        "directory" => (format!("{path} cannot be made or written to"), elsewhere),
        "room" => (format!("it cannot be written below {path}: there may be no room"), "make room there, or " + elsewhere),
        "hash" => ("there is no sha256sum, so the copy cannot be checked".into(), by_hand(host, None)),
        "copy" => (
            "the copy has another SHA-256 than the original".into(),
            "try again; the connection or the disk there damages data".into(),
        ),
        "run" => (format!("it does not run below {path}: the file system may be mounted noexec"), elsewhere),
        other => (format!("it said {other:?}"), by_hand(host, None)),
    }
}

/// The commands to install a binary there by hand.
fn by_hand(host: &str, program: Option<&str>) -> Remedy {
    let own = own_name();
    let program = program.map_or(own.as_path(), Path::new);
    let directory = format!("{PLACE}/{VERSION}");
    let program = shell_word(program.as_os_str().as_bytes());
    shell(format_args!("ssh {host} mkdir -p {directory} &&"))
        + " "
        + shell(format_args!("scp {program} {host}:{directory}/recant"))
}

/// The path that this process was started by.
fn own_name() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| "recant".into())
}

/// Rust's name for a processor, from that of uname(1).
fn machine_of(uname: &str) -> &str {
    match uname {
        "arm64" => "aarch64",
        "amd64" => "x86_64",
        "ppc64le" => "powerpc64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elf(kinds: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..5].copy_from_slice(b"\x7fELF\x02");
        bytes[32..40].copy_from_slice(&64_u64.to_ne_bytes());
        bytes[54..56].copy_from_slice(&56_u16.to_ne_bytes());
        bytes[56..58].copy_from_slice(&u16::try_from(kinds.len()).unwrap().to_ne_bytes());
        for kind in kinds {
            let mut header = [0; 56];
            header[..4].copy_from_slice(&kind.to_ne_bytes());
            bytes.extend(header);
        }
        bytes
    }

    #[test]
    fn a_program_without_an_interpreter_is_static() {
        for (kinds, is_static) in [(&[1_u32, 2][..], true), (&[6, 3, 1], false), (&[], true)] {
            assert_eq!(Program::read(&mut &*elf(kinds)).unwrap().is_static, is_static, "{kinds:?}");
        }
        assert!(Program::of_this_process().is_ok());
    }

    #[test]
    fn what_is_no_program_is_an_error_however_it_is_cut() {
        let whole = elf(&[1, 1, 3]);
        for end in 0..whole.len() - 52 {
            assert!(Program::read(&mut &whole[..end]).is_err(), "cut at {end}");
        }
        let mut far_off = whole;
        far_off[32..40].copy_from_slice(&u64::MAX.to_ne_bytes());
        assert!(Program::read(&mut &*far_off).is_err());
    }

    #[test]
    fn progress_is_what_is_more_than_before_and_has_an_end() {
        let mut progress = Progress::default();
        for (line, is) in [
            ("recant-has 0", false),
            ("recant-has 5\n", true),
            ("recant-has 5\n", false),
            ("recant-has 4\n", false),
            ("recant-there\n", false),
            ("recant-has \n", false),
            ("recant-has 99\n", true),
            ("recant-has 100\n", false),
            ("recant-step 1\n", true),
            ("recant-step 1\n", false),
            ("recant-step 9\n", true),
            ("recant-step 10\n", false),
        ] {
            assert_eq!(progress.advances(line, 50), is, "{line}");
        }
    }

    #[test]
    fn the_text_is_one_that_every_shell_reads_alike() {
        let text = text("00ff", "1");
        let inside = text.strip_prefix("exec sh -c '").unwrap().strip_suffix('\'').unwrap();
        assert!(!inside.contains(['\'', '!', '\\', '\n', '`']), "{text}");
    }
}
