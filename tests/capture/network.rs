//! A run whose network is listed: what people use reaches what is listed by name, and nothing reaches anything else. In a network and with
//! names of each test's own, with servers in it.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::common::{Call, Said, is_root, until};
use crate::desk::{Desk, Who, has};
use crate::mounts::own_mounts;

/// Addresses that are not the loopback's, and the names of the town. Two names lead where no name should.
const ADDRESSES: [&str; 3] = ["10.99.0.1/32", "169.254.169.254/32", "fd99::1/128"];
const NAMES: &str = "127.0.0.1 localhost\n10.99.0.1 web.test other.test git.test pypi.test crates.test npm.test deb.test\n\
    127.0.0.1 home.test\n169.254.169.254 meta.test\n";

const TOWN: &str = include_str!("network/town.py");
const HOSTILE: &str = include_str!("network/hostile.py");

/// The servers of a test, in a network of its own.
struct Town {
    directory: tempfile::TempDir,
    server: Child,
}

impl Town {
    /// `None` where it cannot be set up, as is said.
    fn new() -> Option<Self> {
        let tools = ["ip", "openssl", "curl", "python3"];
        if !is_root("a network of the test's own") || !tools.into_iter().all(|tool| has(tool) || in_sbin(tool)) {
            return None;
        }
        let directory = tempfile::Builder::new().prefix("recant-town-").tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        shell(directory.path(), "chmod 755 .; mkdir pages");
        std::fs::write(path("hosts"), NAMES).unwrap();
        std::fs::write(path("town.py"), TOWN).unwrap();
        std::fs::write(path("hostile.py"), HOSTILE).unwrap();
        let names = "DNS:git.test,DNS:pypi.test,DNS:crates.test,DNS:npm.test,DNS:web.test";
        shell(
            directory.path(),
            &format!(
                "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key -out certificate -days 2 \
                    -subj /CN=town -addext subjectAltName={names} 2> log; cat key certificate > both; : > log; chmod 666 log; \
                 mkdir -p pages/web.test pages/other.test; echo page > pages/web.test/page; echo other > pages/other.test/page"
            ),
        );
        own_network(&path("hosts"));
        let mut server = Command::new("/usr/bin/python3")
            .args(["town.py", "pages", "both", "log"])
            .current_dir(directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Some(Self { directory, server })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// What was asked for, once.
    fn log(&self) -> String {
        let log = std::fs::read_to_string(self.path("log")).unwrap();
        std::fs::write(self.path("log"), "").unwrap();
        log
    }
}

impl Drop for Town {
    fn drop(&mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
    }
}

/// Gives this thread, and what it starts, mounts and a network of its own: a loopback with further addresses, and names for them.
fn own_network(hosts: &Path) {
    own_mounts();
    #[expect(unsafe_code, reason = "no descriptor table is unshared")]
    // SAFETY: unshare(2) with CLONE_NEWNET alone touches no memory and no descriptor of this thread.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) }.unwrap();
    let addresses = ADDRESSES.map(|address| format!("ip addr add {address} dev lo"));
    shell(Path::new("/"), &format!("PATH=$PATH:/usr/sbin; ip link set lo up; {}", addresses.join("; ")));
    rustix::mount::mount_bind(hosts, "/etc/hosts").unwrap();
}

fn in_sbin(program: &str) -> bool {
    Path::new("/usr/sbin").join(program).exists()
}

fn shell(directory: &Path, script: &str) {
    assert!(Command::new("sh").args(["-ec", script]).current_dir(directory).status().unwrap().success(), "{script}");
}

fn each(test: impl Fn(&Desk)) {
    [Who::Root, Who::User].into_iter().for_each(|who| test(&Desk::new(who)));
}

/// A command in a run that reaches these hosts.
fn listed(desk: &Desk, hosts: &str, script: &str) -> Call {
    desk.held(&format!("--discard --network {hosts}"), script)
}

/// The hosts that a report names as refused.
fn refused(said: &Said) -> Vec<String> {
    let lines = said.stderr();
    lines.lines().filter_map(|line| line.strip_prefix("recant: refused: ")).map(str::to_owned).collect()
}

/// Packages of pip and cargo, and a repository, below the names of their servers.
fn packages(town: &Town) {
    let pages = town.path("pages");
    shell(
        &pages,
        r#"
        mkdir -p git.test work pypi.test/simple/demo crates.test/index/de/mo crates.test/dl/demo/1.0.0
        cd work; git init -q; echo file > file; git add .; git -c user.name=a -c user.email=a@b commit -qm one
        cd ..; git clone -q --bare work git.test/repository.git; git -C git.test/repository.git update-server-info
        mkdir -p demo-1.0.0/src; : > demo-1.0.0/src/lib.rs
        printf '[package]\nname = "demo"\nversion = "1.0.0"\nedition = "2021"\n' > demo-1.0.0/Cargo.toml
        tar -czf crates.test/dl/demo/1.0.0/download demo-1.0.0
        sum=$(sha256sum < crates.test/dl/demo/1.0.0/download | cut -d' ' -f1)
        echo '{"dl": "https://crates.test/dl"}' > crates.test/index/config.json
        printf '{"name":"demo","vers":"1.0.0","deps":[],"cksum":"%s","features":{},"yanked":false}\n' $sum > crates.test/index/de/mo/demo
        "#,
    );
    let wheel = r#"
import sys, zipfile
with zipfile.ZipFile(sys.argv[1] + "/demo-1.0.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("demo.py", "")
    info = "demo-1.0.0.dist-info/"
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 1.0.0\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: town\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(info + "RECORD", "demo.py,,\n")
open(sys.argv[1] + "/index.html", "w").write('<a href="demo-1.0.0-py3-none-any.whl">demo-1.0.0-py3-none-any.whl</a>')
"#;
    let directory = pages.join("pypi.test/simple/demo");
    assert!(Command::new("/usr/bin/python3").args(["-c", wheel]).arg(directory).status().unwrap().success());
}

#[test]
fn git_pip_and_cargo_reach_what_is_listed_and_nothing_else() {
    let Some(town) = Town::new() else { return };
    packages(&town);
    let certificate = town.path("certificate").display().to_string();
    let git =
        format!("export GIT_SSL_CAINFO={certificate}; git clone -q https://git.test/repository.git clone && cat clone/file");
    let pip = format!(
        "/usr/bin/python3 -m pip install -q --no-cache-dir --disable-pip-version-check --retries 0 --cert {certificate} --target lib \
            --index-url https://pypi.test/simple demo 2> log && ls lib/demo.py"
    );
    let cargo = Path::new(env!("CARGO"));
    let cargo = format!(
        "mkdir -p p/src p/.cargo; : > p/src/lib.rs; cd p; export CARGO_HTTP_CAINFO={certificate} CARGO_HOME=$PWD/home PATH={}:$PATH; \
         printf '[package]\\nname = \"p\"\\nversion = \"1.0.0\"\\nedition = \"2021\"\\n[dependencies]\\ndemo = \"1\"\\n' > Cargo.toml; \
         printf '[source.crates-io]\\nreplace-with = \"town\"\\n[source.town]\\nregistry = \"sparse+https://crates.test/index/\"\\n\
            [net]\\nretry = 0\\n' > .cargo/config.toml; {} fetch -q && ls home/registry/cache/*/",
        cargo.parent().unwrap().display(),
        cargo.display()
    );
    let mut cases = vec![("git.test", &git, "file\n")];
    cases.extend(has("pip3").then_some(("pypi.test", &pip, "lib/demo.py\n")));
    each(|desk| {
        let mut cases = cases.clone();
        // The toolchain may lie in root's home.
        cases.extend((desk.who == Who::Root).then_some(("crates.test", &cargo, "demo-1.0.0.crate\n")));
        for (host, script, want) in cases {
            let said = listed(desk, host, script).run().ok();
            assert_eq!(said.stdout(), want, "{said}");
            assert_eq!(refused(&said), Vec::<String>::new(), "{said}");
            let said = listed(desk, "web.test", script).run();
            assert_ne!(said.status, 0, "{said}");
            let lines: BTreeSet<String> =
                refused(&said).into_iter().map(|line| line.split([';', ' ']).next().unwrap().to_owned()).collect();
            assert_eq!(lines, [format!("{host}:443")].into(), "{said}");
            assert!(refused(&said)[0].ends_with(&format!("; --network {host} opens it")), "{said}");
        }
    });
}

/// A package of npm, and three of apt, below the names of their servers.
fn more_packages(town: &Town) {
    shell(
        &town.path("pages"),
        r#"
        mkdir -p npm.test/tarballs package deb.test
        printf '{"name": "demo", "version": "1.0.0"}' > package/package.json
        tar -czf npm.test/tarballs/demo.tgz package
        sum=$(sha512sum < npm.test/tarballs/demo.tgz | cut -d' ' -f1 | xxd -r -p | base64 -w0)
        printf '{"name": "demo", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {"name": "demo", "version": "1.0.0",
            "dist": {"tarball": "https://npm.test/tarballs/demo.tgz", "integrity": "sha512-%s"}}}}' "$sum" > npm.test/demo
        for n in 1 2 3; do
            mkdir -p demo$n/DEBIAN
            printf 'Package: demo%s\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b>\nDescription: demo\n' $n > demo$n/DEBIAN/control
            dpkg-deb -b demo$n deb.test/demo$n.deb > log
            { cat demo$n/DEBIAN/control; echo "Filename: ./demo$n.deb"; echo "Size: $(stat -c %s deb.test/demo$n.deb)"
              echo "SHA256: $(sha256sum < deb.test/demo$n.deb | cut -d' ' -f1)"; echo; } >> deb.test/Packages
        done
        "#,
    );
}

#[test]
#[ignore = "long: npm, pnpm and apt"]
fn npm_pnpm_and_apt_reach_what_is_listed_and_nothing_else() {
    let Some(town) = Town::new() else { return };
    if !has("dpkg-deb") || !has("xxd") {
        return;
    }
    more_packages(&town);
    let certificate = town.path("certificate").display().to_string();
    let of_node = |program: &str, cache: &str| {
        format!(
            "export npm_config_cafile={certificate} npm_config_registry=https://npm.test/ npm_config_fetch_retries=0; mkdir p; cd p; \
             echo '{{}}' > package.json; {program} demo --{cache}=$PWD/cache > log 2>&1 && ls node_modules/demo"
        )
    };
    let apt = "echo 'deb [trusted=yes] http://deb.test ./' > list; mkdir -p lists/partial cache/archives/partial; : > status; \
        apt() { apt-get -qq -o Dir::State::Lists=$PWD/lists -o Dir::Cache=$PWD/cache -o Dir::Etc::SourceList=$PWD/list \
        -o Dir::Etc::SourceParts=/dev/null -o Dir::State::status=$PWD/status -o APT::Sandbox::User=root -o Acquire::Retries=0 \
        -o APT::Update::Error-Mode=any \"$@\"; }; apt update && apt download demo1 demo2 demo3 && ls demo*";
    let npm = of_node("npm install --no-audit --no-fund", "cache");
    let pnpm = of_node("pnpm add", "store-dir");
    each(|desk| {
        for (program, host, port, script, want) in [
            ("npm", "npm.test", 443, &*npm, "package.json\n"),
            ("pnpm", "npm.test", 443, &*pnpm, "package.json\n"),
            ("apt-get", "deb.test", 80, apt, "demo1_1_all.deb\ndemo2_1_all.deb\ndemo3_1_all.deb\n"),
        ] {
            if !has(program) {
                continue;
            }
            let said = listed(desk, host, script).run().ok();
            assert_eq!((said.stdout(), refused(&said)), (want.to_owned(), Vec::new()), "{program}: {said}");
            let said = listed(desk, "web.test", script).run();
            assert_ne!(said.status, 0, "{program}: {said}");
            assert!(refused(&said).iter().any(|line| line.starts_with(&format!("{host}:{port}"))), "{program}: {said}");
        }
    });
}

/// Of each attempt, what becomes of it; after `/`, for an ordinary user.
const OUTCOMES: &str = "\
a page of a listed host: 200 exit 0
a tunnel to a listed host: 200 exit 0
SOCKS by a listed name: reply 0
a server of its own, by localhost: 000 exit 28
a DNS query: ENETUNREACH
a raw socket: ENETUNREACH / EPERM
TCP by address: ENETUNREACH
TCP by IPv6: ENETUNREACH
an abstract socket of the machine: ECONNREFUSED
NO_PROXY for all: 000 exit 7
the proxy's own port, taken: EADDRINUSE
the same, shared: EADDRINUSE
an unlisted name: 403
a listed name at another port: 403
the address of a listed name: 403
the machine's loopback: 403
as 0x7f.1: 403
as 2130706433: 403
as [::ffff:127.0.0.1]: 403
as localhost: 403
a listed name that leads to 127.0.0.1: 403
a listed name that leads to 169.254.169.254: 403
CONNECT with another Host: 400
a page with another Host: 400
a page with two Hosts: 400
a user before the host: 400
a path with a Host alone: 400
two lengths: 400
a length and chunks: 400
a second request behind a length: 1 answer, echo hello
a second request behind chunks: 1 answer, echo hello
a redirect to an unlisted host: 403 exit 0
a WebSocket without a tunnel: 200
SOCKS by an unlisted name: reply 2
SOCKS by address: reply 2
SOCKS by IPv6: reply 2
SOCKS, BIND: reply 7
SOCKS, UDP: reply 7
the proxy's process: unseen
";

#[test]
fn a_hostile_command_reaches_nothing_that_is_not_listed() {
    let Some(town) = Town::new() else { return };
    let _abstract = UnixListener::bind_addr(&SocketAddr::from_abstract_name("town").unwrap()).unwrap();
    let script = format!("/usr/bin/python3 {}", town.path("hostile.py").display());
    each(|desk| {
        let said = listed(desk, "web.test,home.test,meta.test", &script).run().ok();
        let of_this_user = |line: &str| match (line.split_once(" / "), desk.who) {
            (Some((root, _)), Who::Root) => root.to_owned(),
            (Some((root, user)), Who::User) => format!("{}: {user}", root.split_once(": ").unwrap().0),
            (None, _) => line.to_owned(),
        };
        let want: Vec<String> = OUTCOMES.lines().map(of_this_user).collect();
        assert_eq!(said.stdout().lines().collect::<Vec<_>>(), want, "{:?}: {said}", desk.who);
        let asked = town.log();
        assert!(asked.contains("web.test /page"), "{asked}");
        assert!(!asked.contains("smuggled") && !asked.contains("other.test"), "{asked}");
        for line in [
            "10.99.0.1:80 (2 times); --network 10.99.0.1 opens it",
            "0x7f.1:80",
            "home.test:80 leads to 127.0.0.1; --network 127.0.0.1 opens it",
            "other.test:80 (3 times); --network other.test opens it",
        ] {
            assert!(refused(&said).iter().any(|refused| refused == line), "{line}: {said}");
        }
    });
}

#[test]
fn what_was_refused_is_in_the_report_and_what_opens_it_does() {
    let Some(_town) = Town::new() else { return };
    each(|desk| {
        let ask = "curl -s http://home.test/page; curl -sk http://web.test:81/ https://web.test/page; true";
        let said = listed(desk, "home.test", ask).run().ok();
        let want = [
            "home.test:80 leads to 127.0.0.1; --network 127.0.0.1 opens it",
            "web.test:81; --network web.test:81 opens it",
            "web.test:443; --network web.test opens it",
        ];
        assert_eq!(refused(&said).iter().map(String::as_str).collect::<BTreeSet<_>>(), want.into(), "{said}");
        let said = desk.call(["run", "--json", "--network", "home.test", "--", "sh", "-c", ask]).run().ok();
        let beyond = &said.json_err()["beyond_files"];
        assert_eq!((&beyond["network"], &beyond["hosts"][0]), (&false.into(), &"home.test".into()), "{said}");
        let row = serde_json::json!({ "host": "home.test", "port": 80, "leads_to": "127.0.0.1", "times": 1 });
        assert_eq!(beyond["refused"][0], row, "{said}");
        let said = listed(
            desk,
            "home.test,127.0.0.1,web.test:81,web.test",
            "curl -s --proxytunnel http://home.test/; curl -sk https://web.test/page",
        )
        .run();
        assert!(said.stdout().ends_with("page\n") && refused(&said).is_empty(), "{said}");
        let said = listed(desk, "nowhere.test", "curl -s http://nowhere.test/ https://nowhere.test/; true").run().ok();
        let told = ["80", "443"].map(|port| format!("recant: not found: nowhere.test:{port}\n"));
        assert!(told.iter().all(|line| said.stderr().contains(line)) && refused(&said).is_empty(), "{said}");
    });
}

#[test]
fn the_proxy_has_nothing_of_the_run_and_without_it_nothing_gets_out() {
    let Some(_town) = Town::new() else { return };
    each(|desk| {
        let script = "curl -s http://web.test/page; echo ready; read go; curl -s http://web.test/page > out; echo $? > status";
        let mut command = desk.held("-n killed --network web.test", script).command();
        let mut run = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        ready(&mut run, "page\nready\n");
        let proxy = proxy_of(run.id());
        // A connection that has just ended had a pipe in each direction.
        until("the proxy holds sockets alone", || {
            kinds_of_descriptors(proxy) == ["/dev/null".to_owned(), "socket".to_owned()].into()
        });
        Command::new("kill").args(["-9", &proxy.to_string()]).status().unwrap();
        run.stdin.take().unwrap().write_all(b"go\n").unwrap();
        assert!(run.wait().unwrap().success());
        assert_eq!(desk.recant("cat killed status").ok().stdout(), "7\n");
        assert_eq!(desk.recant("cat killed out").ok().stdout(), "");

        let mut run = desk.held("--network web.test", "echo ready; read go").command();
        let mut run = run.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        ready(&mut run, "ready\n");
        let proxy = proxy_of(run.id());
        run.kill().unwrap();
        run.wait().unwrap();
        until("the proxy ends with recant", || !Path::new(&format!("/proc/{proxy}")).exists());
    });
}

/// The kinds of what a process has open.
fn kinds_of_descriptors(pid: u32) -> BTreeSet<String> {
    let links = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let links = links.filter_map(|link| std::fs::read_link(link.path()).ok()).map(|link| link.display().to_string());
    links.map(|link| link.split(':').next().unwrap().to_owned()).collect()
}

/// Waits until a run has said this.
fn ready(run: &mut Child, want: &str) {
    let mut said = vec![0; want.len()];
    run.stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
    assert_eq!(String::from_utf8(said).unwrap(), want);
}

/// The proxy that a recant starts, beside the command: a connection waits for it.
fn proxy_of(recant: u32) -> u32 {
    let words = |pid: &str| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut proxy = None;
    until("recant has a proxy", || {
        let children = std::fs::read_to_string(format!("/proc/{recant}/task/{recant}/children")).unwrap();
        proxy = children.split_whitespace().find(|pid| words(pid).split('\0').nth(1) == Some("proxy")).map(str::to_owned);
        proxy.is_some()
    });
    proxy.unwrap().parse().unwrap()
}

#[test]
fn a_command_that_joins_has_the_same_way_out_and_another_list_is_refused() {
    let Some(_town) = Town::new() else { return };
    each(|desk| {
        let mut first = desk.held("--session s --network web.test", "echo ready; read go").command();
        let mut first = first.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        ready(&mut first, "ready\n");
        let said =
            desk.held("--session s --quiet --json", "curl -s http://web.test/page; curl -s http://other.test/page").run().ok();
        assert_eq!(said.stdout(), "page\nrecant: other.test:80 is not listed by --network\n", "{said}");
        assert_eq!(said.json_err()["beyond_files"]["network"], false, "{said}");
        let said = desk.held("--session s --network other.test", "true").run().with(125);
        assert!(said.stderr().contains("with --network"), "{said}");
        first.stdin.take().unwrap().write_all(b"go\n").unwrap();
        let mut said = String::new();
        first.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(said.contains("refused: other.test:80; --network other.test opens it"), "{said}");
        assert!(first.wait().unwrap().success());
    });
}

#[test]
fn a_listed_localhost_is_the_machine_s() {
    let Some(town) = Town::new() else { return };
    std::fs::create_dir_all(town.path("pages/localhost")).unwrap();
    std::fs::write(town.path("pages/localhost/page"), "machine\n").unwrap();
    each(|desk| {
        let ask = "curl -s http://localhost/page";
        assert_eq!(listed(desk, "localhost", ask).run().ok().stdout(), "machine\n");
        assert_eq!(listed(desk, "web.test", ask).run().with(7).stdout(), "");
    });
}
