//! Tests of the settings.

use std::path::{Path, PathBuf};

use super::table::{ROWS, Remote, Settings};
use super::units::{age, age_word, size, size_word};
use super::value::{From, Set, Value};
use super::{Color, OnLimit};

fn read(text: &str) -> Result<Settings, String> {
    Settings::from_text(text, Path::new("/c.toml"), Some(Path::new("/home/u")), &|word| word == "claude")
        .map_err(|error| error.to_string())
}

#[test]
fn sizes_are_binary_and_ages_have_a_unit() {
    for (text, want) in [
        ("0", Some(0)),
        ("500", Some(500)),
        ("1K", Some(1024)),
        ("50M", Some(50 << 20)),
        ("1.5g", Some(3 << 29)),
        ("20MiB", Some(20 << 20)),
        ("20KiB", Some(20 << 10)),
        ("1.5GiB", Some(3 << 29)),
    ] {
        assert_eq!(size(text).ok(), want, "{text}");
    }
    for text in
        ["", "K", "-1", "+1", "1.5", "1T", "5 M", "1e3", "99999999999G", "1.1234567M", "1.M.M", "5iB", "5TiB", "5MB", "MiB"]
    {
        assert!(size(text).is_err(), "{text}");
    }
    for (text, want) in [("90s", 90), ("15m", 900), ("12h", 43_200), ("30d", 2_592_000), ("8w", 4_838_400), ("0d", 0)] {
        assert_eq!(age(text), Ok(want), "{text}");
    }
    for text in ["90s", "15m", "25h", "30d", "8w", "0s"] {
        assert_eq!(age_word(age(text).unwrap()), text);
    }
    for text in ["0", "500", "1K", "1025", "1536K", "50M", "2049M", "3G"] {
        assert_eq!(size_word(size(text).unwrap()), text);
    }
    for text in ["", "d", "30", "-1d", "+1d", "1y", "1 d", "99999999999999999999s", "9999999999999999w", "1ä"] {
        assert!(age(text).is_err(), "{text}");
    }
}

#[test]
fn without_a_file_the_defaults_hold() {
    let config = Settings::defaults(None, None);
    assert_eq!((config.max_files.value, config.max_size.value, config.warn_size.value), (100, 50 << 20, 5 << 30));
    assert_eq!((config.on_limit.value, config.color.value), (OnLimit::Full, Color::Auto));
    assert!(!config.found && config.max_files.from == From::Default);
}

#[test]
fn a_missing_file_no_file_and_an_empty_one_leave_the_same_in_force() {
    for home in [None, Some(Path::new("/home/u"))] {
        let empty = Settings::from_text("", Path::new("/none/c.toml"), home, &|_| false).unwrap();
        assert_eq!(empty.minor.value.iter().any(|glob| glob == "/home/u/.cache"), home.is_some(), "{:?}", empty.minor);
        let missing = Settings::read(Some("/none/c.toml".into()), home, &|_| false).unwrap();
        assert_eq!(missing, Settings { found: false, ..empty.clone() });
        assert_eq!(Settings::read(None, home, &|_| false).unwrap(), Settings { found: false, file: None, ..empty });
    }
}

#[test]
fn what_the_file_says_holds_and_is_known_to_come_from_it() {
    let config = read(
        "color = 'never'\n[store]\npath = '~/s'\nwarn_size = '1G'\n[capture]\nalso = ['/srv']\n[checkpoint]\nmax_size = 7\non_limit = 'partial'\n[retention]\nolder_than = '2w'\n",
    )
    .unwrap();
    assert_eq!(config.store_path, Set { value: Some("/home/u/s".into()), from: From::File });
    assert_eq!((config.warn_size.value, config.max_size.value), (1 << 30, 7));
    assert_eq!(config.also.value, [PathBuf::from("/srv")]);
    assert_eq!((config.on_limit.value, config.max_files.from), (OnLimit::Partial, From::Default));
    assert_eq!(config.older_than.value, Some(1_209_600));
}

#[test]
fn machines_have_names() {
    let config = read("[remote]\nssh = 'ssh -F /etc/x'\n[remotes.web]\nsudo = true\n[remotes.'a.b']\nstore = '/s'\n").unwrap();
    assert_eq!((config.ssh.value.len(), config.timeout.value), (3, Some(60)));
    assert_eq!(read("[remote]\ntimeout = '0s'\n").unwrap().timeout, Set { value: None, from: From::File });
    assert_eq!(read("[remote]\ntimeout = '2m'\n").unwrap().timeout.value, Some(120));
    let web = Remote { sudo: Some(true), ..Remote::default() };
    assert_eq!(config.remotes["web"], web);
    assert_eq!(config.remotes["a.b"].store.as_deref(), Some("/s"));
    assert_eq!(read("[remote]\nssh = ['/opt/my ssh', '-v']\n").unwrap().ssh.value, ["/opt/my ssh", "-v"]);
}

#[test]
fn a_policy_is_a_table_below_that_of_agents_and_names_paths_alone() {
    let config =
        read("[agent.policy]\ncommit = ['docs/**', 'notes/', '~/n/*.md', '/srv/a']\nmax_files = 3\n[agent.claude]\npass = []\n");
    let config = config.unwrap();
    assert_eq!(config.policy_commit.value, ["docs/**", "notes/**", "/home/u/n/*.md", "/srv/a"]);
    assert_eq!((config.policy_max_files.value, config.agents.len()), (3, 1));
    for (glob, why) in [
        ("", "expected a path"),
        ("/", "expected a path"),
        ("~/", "expected a path"),
        ("docs/../src/**", "without '.', '..' and '//'"),
        ("./docs/**", "without '.', '..' and '//'"),
        ("docs//x", "without '.', '..' and '//'"),
        ("docs/..", "without '.', '..' and '//'"),
        ("!docs/x", "'!' has no meaning here"),
        ("a[", "unclosed character class"),
    ] {
        let error = read(&format!("agent.policy.commit = ['{glob}']")).unwrap_err();
        assert!(error.starts_with("/c.toml: agent.policy.commit: ") && error.contains(why), "{glob}: {error}");
    }
    assert!(read("[agent.policy]\ncommits = []").unwrap_err().contains("\"agent.policy.commit\""));
}

#[test]
fn an_unknown_key_is_an_error_that_names_the_nearest() {
    for (text, key, near) in [
        ("colour = 'auto'", "colour", "color"),
        ("[store]\nwarnsize = 1", "store.warnsize", "store.warn_size"),
        ("max_files = 3", "max_files", "checkpoint.max_files"),
        ("[chekpoint]\nmax_size = 3", "chekpoint.max_size", "checkpoint.max_size"),
        ("[pagers]", "pagers", "pager"),
        ("[agent.cloud]\npass = []", "agent.cloud.pass", "capture.pass"),
        ("[remotes.'a.b']\nstroe = 'x'", "remotes.NAME.stroe", "remotes.NAME.store"),
        ("[remotes.web]\nfrob = 1", "remotes.NAME.frob", "remotes.NAME.store"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.contains(&format!("{key:?}")) && error.contains(&format!("{near:?}")), "{text}: {error}");
    }
}

#[test]
fn a_value_of_the_wrong_kind_is_told_by_line_key_and_what_is_wanted_in_words_for_people() {
    for (text, why) in [
        ("[checkpoint]\nmax_files = 'x'", "line 2: checkpoint.max_files: expected a whole number, found 'x'"),
        ("[checkpoint]\nmax_files = -1", "line 2: checkpoint.max_files: expected a whole number, found -1"),
        ("[snapshot]\nkeep = 1.5", "line 2: snapshot.keep: expected a whole number, found 1.5"),
        ("\nretention.keep = 'x'", "line 2: retention.keep: expected a whole number, found 'x'"),
        ("[remotes.web]\nsudo = 'yes'", "line 2: remotes.web.sudo: expected true or false, found 'yes'"),
        ("[remotes]\nweb = 3", "line 2: remotes.web: expected a table, found 3"),
        ("store = 3", "line 1: store: expected a table, found 3"),
        ("pager = 3", "line 1: pager: expected text in quotes, found 3"),
        ("[store]\npath = 3", "line 2: store.path: expected a path in quotes, found 3"),
        ("[capture]\nalso = '/srv'", "line 2: capture.also: expected a list, as in ['a', 'b'], found '/srv'"),
        ("[capture]\nalso = ['/srv',\n 7]", "line 3: capture.also: expected a path in quotes, found 7"),
        ("[checkpoint]\nmax_size = true", "line 2: checkpoint.max_size: expected a size, as in '50M' or 4096, found true"),
        ("[remote]\nssh = 7", "line 2: remote.ssh: expected a command, as in 'ssh -v' or ['ssh', '-v'], found 7"),
        ("[checkpoint]\n\non_limit = 'some'", "line 3: checkpoint.on_limit: expected 'full' or 'partial', found 'some'"),
        ("color = 3", "line 1: color: expected text in quotes, found 3"),
        ("[checkpoint]\nmax_files = [\n1]", "line 2: checkpoint.max_files: expected a whole number, found ["),
    ] {
        assert_eq!(read(text).unwrap_err(), format!("/c.toml: {why}"), "{text}");
    }
}

#[test]
fn a_value_that_cannot_be_meant_is_an_error_with_its_place() {
    for (text, part) in [
        ("[store]\npath = 's'", "store.path: s: a path here starts with"),
        ("[checkpoint]\nmax_size = '5X'", "checkpoint.max_size: \"5X\" is not a size"),
        ("[retention]\nolder_than = 'x'", "retention.older_than"),
        ("[checkpoint]\n\non_limit = 'some'", "line 3"),
        ("a b", "line 1"),
        ("[checkpoint]\nmax_files = -1", "line 2"),
        ("[commit]\ndeny = ['src/*.key']", "commit.deny: \"src/*.key\": with a '/' in it"),
        ("[commit]\ndeny = ['!a']", "commit.deny: \"!a\": '!' has no meaning here"),
        ("[commit]\ndeny = ['/']", "it matches every path"),
        ("[commit]\ndeny = ['a[']", "unclosed character class"),
        ("store = 3", "line 1"),
        ("[remote]\nssh = ' '", "remote.ssh: no program is named"),
        ("[remote]\ntimeout = '2h'", "remote.timeout: \"2h\": at most an hour"),
        ("[remote]\ntimeout = '2x'", "remote.timeout: \"2x\" is not an age"),
        ("[remotes]\nweb = 3", "line 2"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.starts_with("/c.toml: ") && error.contains(part), "{text}: {error}");
    }
}

#[test]
fn the_page_of_settings_has_the_table_of_settings() {
    let page = include_str!("../../docs/reference/settings.md");
    let (_, shown) = page.split_once("| key | default | means |\n| --- | --- | --- |\n").expect("a table on the page");
    let defaults = Settings::defaults(None, Some(Path::new("~"))).list();
    let code = |text: &str| format!("`{text}`");
    let default = |key: &str| match &defaults.iter().find(|setting| setting.key == key).expect("a listed setting").value {
        Value::None => "none".into(),
        Value::List(list) if list.is_empty() => "none".into(),
        Value::Number(number) => number.to_string(),
        Value::Flag(flag) => code(&flag.to_string()),
        Value::Bytes(bytes) => code(&size_word(*bytes)),
        Value::Seconds(seconds) => code(&age_word(*seconds)),
        Value::Text(text) => code(text),
        Value::List(list) | Value::Command(list) => code(&list.join(" ")),
    };
    let line = |row: &super::Row| {
        let default = row.shown.map_or_else(|| default(row.key), str::to_owned);
        format!("| `{}` | {default} | {} |\n", row.key, row.doc.trim())
    };
    let made: String = ROWS.iter().map(line).collect();
    assert!(
        shown.split_once("\n\n").is_some_and(|(table, _)| made.trim_end() == table),
        "docs/reference/settings.md has this table:\n{made}"
    );
}
