//! Machines for the tests of `-H`: each a real sshd on a loopback port, with keys, a home and a store of its own. Nobody's ~/.ssh is
//! read or written: `remote.ssh` of the world's settings names a file of ssh's settings of the world's own.
//! A file of its own beside `common`: `#[path = "common/ssh.rs"] mod ssh;`

#![allow(dead_code, reason = "each test binary uses a part of the fixture")]
#![allow(clippy::print_stdout, reason = "what is skipped is said")]
#![expect(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests set up real files")]

use std::ffi::OsStr;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use crate::common::{Call, World, recant};

/// Keys and settings of ssh, for one world.
pub struct Net {
    directory: PathBuf,
    binary: PathBuf,
    apart: bool,
}

/// A machine. Its sshd ends with it.
pub struct Host {
    pub name: String,
    pub port: u16,
    pub home: PathBuf,
    directory: PathBuf,
    sshd: Child,
    account: Account,
    wire: Option<Wire>,
}

/// A network namespace with one link to this one, which goes with it.
pub struct Wire {
    namespace: String,
    link: String,
    address: Ipv4Addr,
}

impl Wire {
    /// `None`, said as a skip, where it cannot be made.
    fn new() -> Option<Self> {
        static MADE: AtomicU8 = AtomicU8::new(0);
        let (pid, n) = (std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let (namespace, link) = (format!("recant-{pid}-{n}"), format!("rc{pid}n{n}"));
        // Of the range for tests between networks, RFC 2544; nobody else's.
        let net = |host: u8| Ipv4Addr::new(198, 18 + (pid >> 8 & 1) as u8, pid as u8, n * 4 + host);
        let wire = Self { address: net(2), namespace, link };
        let (name, link) = (&wire.namespace, &wire.link);
        let made = ip(&format!("netns add {name}"))
            && ip(&format!("link add {link} type veth peer name eth0 netns {name}"))
            && ip(&format!("address add {}/30 dev {link}", net(1)))
            && ip(&format!("link set {link} up"))
            && ip(&format!("-n {name} address add {}/30 dev eth0", wire.address))
            && ip(&format!("-n {name} link set eth0 up"))
            && ip(&format!("-n {name} link set lo up"));
        if !made {
            println!("skipped: machines with networks of their own: a network namespace with a veth needs root and iproute2");
        }
        made.then_some(wire)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        // The link goes with its other end.
        ip(&format!("netns del {}", self.namespace));
    }
}

fn ip(words: &str) -> bool {
    let mut command = Command::new("ip");
    command.args(words.split(' ')).stderr(Stdio::null()).stdout(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Who is logged in to.
#[derive(Clone, PartialEq, Debug)]
pub struct Account {
    pub name: String,
    pub uid: u32,
    shell: String,
}

fn accounts() -> Vec<Account> {
    let text = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let account = |line: &str| {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, uid, _, _, _, shell] = fields[..] else { return None };
        Some(Account { name: name.into(), uid: uid.parse().ok()?, shell: shell.into() })
    };
    text.lines().filter_map(account).collect()
}

/// The account that the tests run as.
fn own() -> Option<Account> {
    let uid = rustix::process::geteuid().as_raw();
    accounts().into_iter().find(|account| account.uid == uid)
}

/// An ordinary user's account, for root to log in to.
pub fn ordinary() -> Option<Account> {
    let fits = |account: &Account| account.uid >= 1000 && account.uid < 60_000 && !account.shell.contains("nologin");
    // By itself sshd lets nobody in whose password is locked, as those of accounts for services are; PAM does.
    let fits = |account: &Account| fits(account) && Path::new("/etc/pam.d/sshd").exists();
    let found = accounts().into_iter().find(fits).filter(|_| rustix::process::geteuid().is_root());
    if found.is_none() {
        println!("skipped: the far side as another user: needs root here, and an ordinary user's account, and sshd's PAM");
    }
    found
}

fn sshd() -> Option<PathBuf> {
    ["/usr/sbin/sshd", "/usr/bin/sshd", "/sbin/sshd"].into_iter().map(PathBuf::from).find(|path| path.exists())
}

impl Net {
    /// Makes keys, and lets the world's recant use them. `None`, said as a skip, where there can be no sshd.
    pub fn new(world: &mut World) -> Option<Self> {
        let skip = |why: &str| println!("skipped: other machines: {why}");
        if sshd().is_none() || Command::new("ssh").arg("-V").stderr(Stdio::null()).status().is_err() {
            skip("openssh-server and openssh-client are not installed");
            return None;
        }
        match own() {
            None => {
                skip("sshd lets nobody in who has no line in /etc/passwd");
                return None;
            }
            Some(own) if own.shell.contains("nologin") || own.shell.ends_with("false") => {
                skip(&format!("the login shell of {} carries out no commands", own.name));
                return None;
            }
            Some(_) => {}
        }
        let directory = world.root().join("ssh");
        std::fs::create_dir(&directory).unwrap();
        // The far side may be another user's.
        std::fs::set_permissions(world.root(), std::fs::Permissions::from_mode(0o755)).unwrap();
        for key in ["user", "host"] {
            run(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(directory.join(key)));
        }
        std::fs::copy(directory.join("user.pub"), directory.join("authorized")).unwrap();
        let shown = directory.display();
        let settings = format!(
            "IdentityFile {shown}/user\nIdentitiesOnly yes\nIdentityAgent none\nUserKnownHostsFile {shown}/known\n\
             GlobalKnownHostsFile /dev/null\nStrictHostKeyChecking yes\nBatchMode yes\n\
             ControlMaster auto\nControlPath {shown}/%p\nControlPersist 60\n"
        );
        std::fs::write(directory.join("config"), settings).unwrap();
        // Another user may not be let into the build directory.
        let binary = world.root().join("recant");
        run(Command::new("cp").arg(recant()).arg(&binary));
        world.config(&format!("[remote]\nssh = 'ssh -F {shown}/config'\n"));
        Some(Self { directory, binary, apart: false })
    }

    /// The machines that are made from here on have networks of their own. `None`, said as a skip, where they cannot.
    pub fn apart(self) -> Option<Self> {
        Wire::new().map(|_tried| Self { apart: true, ..self })
    }

    /// A machine with recant in its place, reached by this name.
    pub fn host(&self, name: &str) -> Host {
        let host = self.bare(name);
        host.give_recant(&self.binary);
        host
    }

    /// One without recant.
    pub fn bare(&self, name: &str) -> Host {
        self.machine(name, own().unwrap(), "/bin/sh")
    }

    /// One of another user's.
    pub fn host_of(&self, name: &str, account: &Account) -> Host {
        let host = self.machine(name, account.clone(), "/bin/sh");
        host.give_recant(&self.binary);
        host
    }

    /// One of another user's, without recant.
    pub fn bare_of(&self, name: &str, account: &Account) -> Host {
        self.machine(name, account.clone(), "/bin/sh")
    }

    /// One with another login shell.
    pub fn host_with_shell(&self, name: &str, shell: &str) -> Host {
        let host = self.machine(name, own().unwrap(), shell);
        host.give_recant(&self.binary);
        host
    }

    /// The file of ssh's settings.
    pub fn settings(&self) -> PathBuf {
        self.directory.join("config")
    }

    fn machine(&self, name: &str, account: Account, shell: &str) -> Host {
        let directory = self.directory.parent().unwrap().join("hosts").join(name);
        let home = directory.join("home");
        std::fs::create_dir_all(&home).unwrap();
        // What sshd runs in the place of the account's shell: the same, in a home of its own.
        let login = directory.join("login");
        let shown = home.display();
        let text = format!(
            "#!/bin/sh\nexport HOME={shown} SHELL={shell}\ncd {shown}\nif [ -e .noise ]; then . ./.noise; fi\nexec {shell} -c \"$SSH_ORIGINAL_COMMAND\"\n"
        );
        std::fs::write(&login, text).unwrap();
        std::fs::set_permissions(&login, std::fs::Permissions::from_mode(0o755)).unwrap();
        let wire = self.apart.then(|| Wire::new().unwrap());
        let mut host = Host { name: name.into(), port: 0, home, directory, sshd: spawn(Command::new("true")), account, wire };
        host.start();
        host.own(&host.home);
        append(&self.directory.join("config"), &host.settings());
        let key = std::fs::read_to_string(self.directory.join("host.pub")).unwrap();
        append(&self.directory.join("known"), &format!("[{}]:{} {key}", host.address(), host.port));
        host
    }
}

impl Host {
    /// Starts its sshd, on another port than any before.
    fn start(&mut self) {
        if rustix::process::geteuid().is_root() {
            // Debian makes it when the service starts; sshd wants an empty directory there.
            let _there = std::fs::create_dir("/run/sshd");
        }
        let ssh = self.directory.ancestors().nth(2).unwrap().join("ssh");
        for _ in 0..20 {
            let address = self.address();
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let settings = format!(
                "ListenAddress {address}:{port}\nHostKey {ssh}/host\nAuthorizedKeysFile {ssh}/authorized\nStrictModes no\nUsePAM {pam}\n\
                 PidFile none\nPermitRootLogin yes\nPasswordAuthentication no\nMaxStartups 200\nMaxSessions 100\nUseDNS no\nPrintMotd no\nForceCommand {}\nSetEnv HOME={}\n",
                self.directory.join("login").display(),
                // bash, begun by sshd, reads ~/.bashrc, which is the account's own else.
                self.home.display(),
                ssh = ssh.display(),
                pam = if Some(&self.account) == own().as_ref() { "no" } else { "yes" },
            );
            let file = self.directory.join("sshd_config");
            std::fs::write(&file, settings).unwrap();
            let log = std::fs::File::create(self.directory.join("log")).unwrap();
            let program = sshd().unwrap();
            let mut sshd = match &self.wire {
                None => Command::new(program),
                Some(wire) => {
                    let mut inside = Command::new("ip");
                    inside.args(["netns", "exec", &wire.namespace]).arg(program);
                    inside
                }
            };
            sshd.arg("-D").arg("-e").arg("-f").arg(&file).stderr(log).stdin(Stdio::null());
            self.sshd = spawn(sshd);
            let end = Instant::now() + Duration::from_secs(20);
            while Instant::now() < end && self.sshd.try_wait().unwrap().is_none() {
                if TcpStream::connect((address, port)).is_ok() {
                    self.port = port;
                    return;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            // Somebody took the port meanwhile.
            let _gone = self.sshd.kill();
        }
        panic!("sshd does not start: {}", std::fs::read_to_string(self.directory.join("log")).unwrap_or_default());
    }

    fn settings(&self) -> String {
        let address = self.address();
        format!("Host {}\n  HostName {address}\n  Port {}\n  User {}\n", self.name, self.port, self.account.name)
    }

    fn address(&self) -> Ipv4Addr {
        self.wire.as_ref().map_or(Ipv4Addr::LOCALHOST, |wire| wire.address)
    }

    /// Takes away, or gives back, this machine's way to everybody.
    pub fn plug(&self, up: bool) {
        let Wire { namespace, .. } = self.wire.as_ref().unwrap();
        assert!(ip(&format!("-n {namespace} link set eth0 {}", if up { "up" } else { "down" })));
    }

    /// Makes the way to this machine slow: so many bytes a second, as tc(8) has them. False, said as a skip, where the kernel cannot.
    pub fn slow(&self, rate: &str) -> bool {
        let link = &self.wire.as_ref().unwrap().link;
        let words = format!("qdisc add dev {link} root tbf rate {rate} burst 32kb latency 400ms");
        let mut tc = Command::new("tc");
        let made = tc.args(words.split(' ')).stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        if !made {
            println!("skipped: a slow line: tc has no token bucket filter here (iproute2, sch_tbf)");
        }
        made
    }

    /// Puts recant where one lies that was put there.
    pub fn give_recant(&self, binary: &Path) {
        let place = self.recant();
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        symlink(binary, &place).unwrap();
        self.own(&self.home);
    }

    /// The place of a recant that was put there.
    pub fn recant(&self) -> PathBuf {
        self.home.join(".local/lib/recant/bin").join(env!("CARGO_PKG_VERSION")).join("recant")
    }

    /// The store there.
    pub fn store(&self) -> PathBuf {
        self.home.join(".local/share/recant")
    }

    /// Makes a file below the home there, with its directories.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.home.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        self.own(&path);
    }

    /// The content of a file below the home there.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.home.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Gives what lies there to whom the machine belongs.
    pub fn own(&self, path: &Path) {
        if Some(&self.account) != own().as_ref() {
            run(Command::new("chown").arg("-hR").arg(format!("{}:", self.account.name)).arg(path));
        }
    }

    /// recant itself, started on that machine: what `-H` is to be like.
    pub fn here<A: AsRef<OsStr>>(&self, world: &World, args: impl IntoIterator<Item = A>) -> Call {
        let call = world.call(args).cwd(&self.home).env("HOME", &self.home).without("RECANT_STORE");
        call.without("XDG_DATA_HOME").without("XDG_CONFIG_HOME")
    }

    /// The processes of open connections: sshd's own children.
    pub fn connections(&self) -> Vec<i32> {
        children(self.sshd.id())
    }
}

impl Host {
    /// Cuts every connection at once, on this side of the network, as a machine does that goes down.
    pub fn cut(&self) {
        let mut todo = self.connections();
        while let Some(pid) = todo.pop() {
            // sshd's own processes alone: what they have started is to find out for itself.
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            if name.starts_with("sshd") {
                todo.extend(children(pid as u32));
                kill(pid);
            }
        }
    }

    /// The sshd that listens.
    pub fn listener(&self) -> u32 {
        self.sshd.id()
    }

    /// The recant that a relay of this machine has started, once there is one.
    pub fn writer(&self) -> i32 {
        let mut found = None;
        crate::common::until("a verb runs there", || {
            found = self.relayed();
            found.is_some()
        });
        found.unwrap()
    }

    fn relayed(&self) -> Option<i32> {
        let mut todo = self.connections();
        while let Some(pid) = todo.pop() {
            let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let mut words = words.split(|b| *b == 0);
            if words.next() == Some(b"recant") && words.next() == Some(b"--far") {
                return Some(pid);
            }
            todo.extend(children(pid as u32));
        }
        None
    }
}

/// kill -9.
pub fn kill(pid: i32) {
    let _gone = rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), rustix::process::Signal::KILL);
}

/// The process that has started another.
pub fn parent(pid: i32) -> i32 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap().trim().parse().unwrap()
}

/// The children of a process.
pub fn children(pid: u32) -> Vec<i32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

impl Drop for Host {
    fn drop(&mut self) {
        for pid in self.connections() {
            let _gone =
                rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), rustix::process::Signal::KILL);
        }
        let _gone = self.sshd.kill();
        let _ended = self.sshd.wait();
    }
}

fn append(path: &Path, text: &str) {
    let before = std::fs::read_to_string(path).unwrap_or_default();
    std::fs::write(path, before + text).unwrap();
}

fn spawn(mut command: Command) -> Child {
    command.stdout(Stdio::null()).spawn().unwrap()
}

fn run(command: &mut Command) {
    assert!(command.status().unwrap().success(), "{command:?}");
}
