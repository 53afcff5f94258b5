//! `--closed`: secrets that a command cannot read, what it is told of them, and what it sees of sessions.

use std::path::PathBuf;

use crate::desk::{Desk, Who, each};

/// A home with secrets, and what lies beside them.
const SECRETS: &str = "mkdir -p .ssh .aws .gnupg/private-keys-v1.d .config/gcloud .docker .cargo .local/share/keyrings .password-store; \
    for key in id_ed25519 work.pem; do printf -- '-----BEGIN OPENSSH PRIVATE KEY-----\nsesame\n' > .ssh/$key; done; \
    echo sesame > .ssh/id_hardware; mkdir -p .config/gh .config/glab-cli; printf 'github.com:\n    oauth_token: sesame\n' > .config/gh/hosts.yml; \
    printf 'hosts:\n    gitlab.com:\n        token: sesame\n' > .config/glab-cli/config.yml; \
    echo ssh-ed25519 AAAA > .ssh/id_ed25519.pub; echo 'Host web1' > .ssh/config; echo web1 > .ssh/known_hosts; \
    echo sesame > .aws/credentials; echo region=here > .aws/config; echo sesame > .gnupg/private-keys-v1.d/k; \
    echo sesame > .config/gcloud/credentials.db; echo sesame > .local/share/keyrings/login; echo sesame > .password-store/p; \
    echo '//registry/:_authToken=sesame' > .npmrc; printf '[pypi]\npassword = sesame\n' > .pypirc; \
    printf '[registry]\ntoken = \"sesame\"\n' > .cargo/credentials.toml; echo '{\"auths\":{\"r\":{\"auth\":\"sesame\"}}}' > .docker/config.json; \
    ln -s .aws clouds; chmod 700 .ssh .gnupg; chmod 600 .ssh/*";

const CLOSED: [&str; 14] = [
    ".ssh/id_ed25519",
    ".ssh/id_hardware",
    ".config/gh/hosts.yml",
    ".config/glab-cli/config.yml",
    ".ssh/work.pem",
    ".aws/credentials",
    "clouds/credentials",
    ".gnupg/private-keys-v1.d/k",
    ".config/gcloud/credentials.db",
    ".local/share/keyrings/login",
    ".password-store/p",
    ".npmrc",
    ".pypirc",
    ".cargo/credentials.toml",
];

const OPEN: [&str; 4] = [".ssh/id_ed25519.pub", ".ssh/config", ".ssh/known_hosts", ".aws/config"];

/// Each user, with secrets in his home.
fn with_secrets(test: impl Fn(&Desk)) {
    each(|desk| {
        desk.bare(&desk.world.root().join("home"), SECRETS);
        test(desk);
    });
}

#[test]
fn what_is_secret_cannot_be_read_and_what_lies_beside_it_can() {
    with_secrets(|desk| {
        let home = desk.world.root().join("home");
        let (closed, open) = (CLOSED.join(" "), OPEN.join(" "));
        let script = format!(
            "cd; for path in {closed} .docker/config.json; do cat $path && echo read: $path; done; cat {open} > /dev/null || echo not read; \
             grep -rsh sesame . --exclude-dir=.local --exclude-dir=tree; cp -a .ssh copy && ls copy && grep -r sesame copy; true"
        );
        let said = desk.held("--closed --discard", &script).run().ok();
        let (out, err) = (said.stdout(), said.stderr());
        assert!(!out.contains("sesame") && !out.contains("read"), "{said}");
        // A user is refused. Root, whom modes do not stop, finds nothing.
        let why = if desk.who == Who::Root { "No such file or directory" } else { "Permission denied" };
        assert_eq!(err.matches(why).count(), CLOSED.len() + 1, "{said}");
        // Outside, all is as it was.
        assert!(CLOSED.iter().all(|path| std::fs::read_to_string(home.join(path)).unwrap().contains("sesame")));
        // Without the option nothing is closed.
        let said = desk.held("--discard", &format!("cd; cat {closed} | grep -c sesame")).run().ok();
        assert_eq!(said.stdout(), format!("{}\n", CLOSED.len()));
    });
}

#[test]
fn a_registry_s_settings_without_a_token_are_open() {
    with_secrets(|desk| {
        let home = desk.world.root().join("home");
        desk.bare(
            &home,
            "echo save-exact=true > .npmrc; echo '[distutils]' > .pypirc; echo '{\"auths\":{}}' > .docker/config.json; \
                          echo '[registry]' > .cargo/credentials.toml; echo 'git_protocol: ssh' > .config/gh/hosts.yml",
        );
        let script = "cd; cat .npmrc .pypirc .docker/config.json .cargo/credentials.toml .config/gh/hosts.yml";
        assert_eq!(desk.held("--closed", script).run().ok().stdout().lines().count(), 5);
    });
}

#[test]
fn what_a_variable_says_lies_elsewhere_is_closed_there() {
    each(|desk| {
        let elsewhere = desk.world.root().join("home/else");
        desk.bare(
            desk.world.root(),
            "mkdir -p home/else/gh home/else/cloud home/else/keys; echo sesame | tee home/else/one home/else/two home/else/cloud/db home/else/keys/k; \
             echo 'oauth_token: sesame' > home/else/gh/hosts.yml; echo open > home/else/gh/config.yml",
        );
        let at = |below: &str| elsewhere.join(below).display().to_string();
        let run = desk.held("--closed", &format!("cd {}; cat gh/hosts.yml one two cloud/db keys/k; cat gh/config.yml", at("")));
        let run = run.env("XDG_CONFIG_HOME", at("")).env("KUBECONFIG", format!("{}:{}", at("one"), at("two")));
        let said = run.env("CLOUDSDK_CONFIG", at("cloud")).env("GNUPGHOME", at("keys")).run().ok();
        assert_eq!(said.stdout(), "open\n", "{said}");

        // A device is none, and what lies in the project, or has the home directory in it, stays open.
        desk.bare(&desk.world.tree(), "echo mine > kubeconfig");
        let script = "cat kubeconfig; echo x > /dev/null && echo written; cat $NETRC";
        let run = desk.held("--closed", script).env("KUBECONFIG", "kubeconfig").env("AWS_CONFIG_FILE", "/dev/null");
        let relative = elsewhere.strip_prefix(desk.world.root()).unwrap().join("one");
        let up: PathBuf = desk.world.tree().strip_prefix(desk.world.root()).unwrap().components().map(|_| "..").collect();
        let said = run.env("NETRC", up.join(relative)).env("GNUPGHOME", desk.world.root().join("home")).run();
        assert_eq!(said.stdout(), "mine\nwritten\n", "{said}");
        assert!(said.stderr().contains("GNUPGHOME: stays open, as it holds the project, home or the store"), "{said}");
    });
}

#[test]
fn what_is_opened_or_passed_is_open_and_nothing_beside_it() {
    with_secrets(|desk| {
        let home = desk.world.root().join("home").display().to_string();
        let read = |options: &str, path: &str| {
            let said = desk.held(&format!("--closed {options}"), &format!("cat {home}/{path}")).run();
            said.status == 0 && said.stdout().contains("sesame")
        };
        let key = ".gnupg/private-keys-v1.d/k";
        desk.bare(desk.world.root(), "echo sesame > home/.gnupg/other; mkdir home/.gnupg/more; echo sesame > home/.gnupg/more/m");
        assert!(read(&format!("--open {home}/.ssh"), ".ssh/work.pem"));
        assert!(read(&format!("--open {home}/.ssh/work.pem"), ".ssh/work.pem"));
        assert!(!read(&format!("--open {home}/.ssh/work.pem"), ".ssh/id_ed25519"));
        assert!(read(&format!("--open {home}/.gnupg/private-keys-v1.d"), key));
        assert!(!read(&format!("--open {home}/.gnupg/private-keys-v1.d"), ".gnupg/other"));
        assert!(!read(&format!("--open {home}/.gnupg/private-keys-v1.d"), ".gnupg/more/m"));
        assert!(read(&format!("--pass {home}/.aws/credentials"), ".aws/credentials"));
        assert!(read(&format!("--open {home}"), ".npmrc"));
        let said = |path: &str| desk.held(&format!("--closed --open {path}"), "true").run().ok().stderr();
        let nothing = format!("{home}/.shh: --open: nothing is closed there");
        assert!(
            said(&format!("{home}/.shh")).contains(&nothing) && !said(&format!("{home}/.ssh/new")).contains("nothing is closed")
        );
        // The settings name other paths.
        desk.world.config("[agent]\nclosed = ['~/notes', '~/.ssh']\n");
        desk.bare(desk.world.root(), "echo sesame > home/notes");
        assert!(!read("", "notes") && !read("", ".ssh/work.pem") && read("", ".npmrc"));
        desk.world.config("[agent]\nclosed = []\n");
        assert!(read("", ".ssh/work.pem"));
        for words in ["run --open x -- true", "run --in tree --closed -- true", "run --open x --in tree -- true"] {
            assert!(desk.recant(words).status >= 2, "{words}");
        }
    });
}

#[test]
fn a_command_that_fails_after_it_was_refused_is_told_so() {
    with_secrets(|desk| {
        let key = desk.world.root().join("home/.ssh/work.pem").canonicalize().unwrap().display().to_string();
        let told = format!("{key}: closed to the command (ssh keys); --open opens it");
        let said = desk.held("--closed", "cat ~/.ssh/work.pem").run();
        assert!(said.status == 1 && said.stderr().contains(&told) && !said.stderr().contains("id_ed25519"), "{said}");
        // One that fails for another reason, and one that can do without.
        assert!(!desk.held("--closed", "false").run().stderr().contains("--open"));
        let said = desk.held("--closed", "cat ~/.ssh/work.pem 2> /dev/null; echo new > new").run().ok();
        assert!(!said.stderr().contains(&told), "{said}");
        // The report counts what was closed.
        assert!(said.stderr().contains("closed to it: 14 paths ("), "{said}");
        let said = desk.held("-v --closed", "true").run().ok();
        assert!(said.stderr().contains("closed to it: ~/.ssh/work.pem: ssh keys"), "{said}");
        let said = desk.held("--json --closed", "true").run().ok();
        let closed = &said.json_err()["beyond_files"]["closed"];
        let has = |row: &serde_json::Value| row["path"].as_str() == Some(&*key) && row["holds"] == "ssh keys";
        assert!(closed.as_array().unwrap().iter().any(has), "{said}");
    });
}

#[test]
fn keys_below_and_what_cannot_be_read_are_closed_too() {
    with_secrets(|desk| {
        let home = desk.world.root().join("home");
        desk.bare(
            &home,
            "mkdir -p .ssh/work/old; cp .ssh/work.pem .ssh/work/old/key; chmod 0 .ssh/id_ed25519; cp -r .ssh/work .ssh/off; \
                          chmod 0 .ssh/off",
        );
        let script = "cd ~/.ssh; chmod 700 off id_ed25519; cat work/old/key off/old/key id_ed25519; cat config";
        let said = desk.held("--closed", script).run().ok();
        assert_eq!(said.stdout(), "Host web1\n", "{said}");
        desk.bare(&home, "chmod 700 .ssh/off; chmod 0 .aws");
        let said = desk.held("--closed", "chmod 700 ~/.aws; cat ~/.aws/credentials").run();
        assert!(said.status != 0 && !said.stdout().contains("sesame"), "{said}");
        desk.bare(&home, "chmod 700 .aws");
    });
}

#[test]
fn what_a_session_has_moved_is_not_open_in_its_next_closed_run() {
    with_secrets(|desk| {
        // As a user, what is closed holds what it lies in.
        desk.held("-q --session s --closed", "mv ~/.aws ~/other; echo 1 > one; true").run().ok();
        let said = desk.held("--session s --closed", "cat ~/other/credentials; echo on").run();
        assert!(!said.stdout().contains("sesame"), "{said}");
        assert!(said.status == 0 || said.status == 125 && said.stderr().contains("has deleted or moved it"), "{said}");
        desk.held("-q --session d", "rm ~/.ssh/work.pem").run().ok();
        let said = desk.held("--session d --closed", "true").run().with(125);
        let key = desk.world.root().join("home/.ssh/work.pem").canonicalize().unwrap().display().to_string();
        assert!(said.stderr().contains(&format!("--open {key}")), "{said}");
        desk.held(&format!("--session d --closed --open {key}"), "true").run().ok();
    });
}

#[test]
fn a_copy_of_what_stands_for_a_closed_file_is_named() {
    with_secrets(|desk| {
        let said = desk.held("--closed", "cp -a ~/.ssh ~/copy").run().ok();
        let warns = "a link in the place of a closed file, not its content";
        assert!(said.stderr().replace('\n', " ").contains(warns) && said.stderr().contains("copy/id_ed25519"), "{said}");
        assert!(!desk.held("--closed", "cp ~/.ssh/config ~/c2").run().ok().stderr().contains(warns));
    });
}

#[test]
fn what_stands_for_a_closed_file_is_refused_at_the_commit_by_name() {
    with_secrets(|desk| {
        let home = desk.world.root().join("home");
        desk.held("-q -n copied --closed", "cp -a ~/.ssh ~/.ssh2; echo one > one").run().ok();
        let said = desk.recant("commit copied -y").with(1);
        let told = said.stderr().replace('\n', " ");
        assert!(told.contains(".ssh2/id_ed25519: a link in the place of a closed file, not its content"), "{said}");
        assert!(desk.recant("commit copied -y --dry-run").status == 1 && home.join(".ssh/id_ed25519").exists());
        assert!(!home.join(".ssh2").exists());
        // A part that has one is refused, too; what is beside it goes.
        assert_eq!(desk.recant(&format!("commit copied -y {}/.ssh2", home.display())).status, 1);
        desk.recant("commit copied -y one").ok();
        assert!(!home.join(".ssh2").exists());
    });
}

#[test]
fn a_closed_directory_is_no_place_to_work_in() {
    with_secrets(|desk| {
        let store = desk.world.root().join("home/.password-store");
        let said = desk.held("--closed", "true").cwd(&store).run().with(125);
        assert!(said.stderr().contains("closed to the command") && said.stderr().contains("--open"), "{said}");
        desk.held(&format!("--closed --open {}", store.display()), "cat p").cwd(&store).run().ok();
    });
}

/// Other sessions may hold what is closed, and are no business of the command.
#[test]
fn a_closed_run_sees_its_own_session_alone() {
    with_secrets(|desk| {
        desk.held("-q -n other", "echo other > other").run().ok();
        desk.recant("commit other").ok();
        desk.held("-q -n third", "echo third > third").run().ok();
        desk.held("-q --session own --closed", "echo own > own").run().ok();
        let id = desk.ids().into_iter().find(|id| desk.paths(id) == ["own"]).unwrap();
        let script = "echo more > more; $RECANT diff; $RECANT list --all; $RECANT log --all; for id in $IDS other third; do \
                      $RECANT show $id; $RECANT diff $id; done 2> /dev/null";
        let ids = desk.ids().into_iter().filter(|other| *other != id).collect::<Vec<_>>().join(" ");
        let call = desk.held("--session own --closed", script).env("RECANT", &desk.binary).env("IDS", ids);
        let said = call.run();
        let out = said.stdout();
        assert!(out.contains("+own") && out.contains("+more") && !out.contains("other") && !out.contains("third"), "{said}");
        // What the session itself holds of a closed file is not shown either.
        desk.held("-q --session own", "echo open-sesame > ~/.npmrc; echo _auth=x >> ~/.npmrc").run().ok();
        let call = desk.held("--session own --closed", "$RECANT diff; $RECANT diff --stat").env("RECANT", &desk.binary);
        let said = call.run();
        assert!(!said.stdout().contains("open-sesame") && said.stderr().contains("shows no content of sessions"), "{said}");
    });
}

#[test]
fn the_ssh_agent_s_socket_stays_unless_the_settings_say_otherwise() {
    with_secrets(|desk| {
        let socket = desk.world.root().join("home/.gnupg/S.ssh");
        let _listening = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        std::fs::set_permissions(&socket, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
        let asks = "python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])' \"$SSH_AUTH_SOCK\"";
        let call = |options: &str| desk.held(options, asks).env("SSH_AUTH_SOCK", &socket).run();
        assert_eq!(call("--closed").status, 0);
        desk.world.config("[agent]\nssh_agent = false\n");
        assert_ne!(call("--closed").status, 0);
        assert_eq!(call("").status, 0);
    });
}
