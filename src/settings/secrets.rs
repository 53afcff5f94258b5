//! Files that hold secrets, which a closed run cannot read: the default of `agent.closed`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A file that holds secrets, or a directory of such.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Secret {
    /// The path below the home directory.
    pub path: &'static str,
    pub what: &'static str,
    pub holds: Holds,
}

/// The part of a path that is secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// All of it.
    All,
    /// Files in the directory with a private key, or with the name of one; what else is there tells ssh of hosts.
    PrivateKeys,
    /// The file, if one of these words is followed by a value of its own, as in `_authToken=abc`. Else it is settings that programs need.
    After(&'static [&'static str]),
}

/// The default of `agent.closed`, with the reasons.
pub const SECRETS: &[Secret] = {
    const fn all(path: &'static str, what: &'static str) -> Secret {
        Secret { path, what, holds: Holds::All }
    }
    const fn token(path: &'static str, words: &'static [&'static str]) -> Secret {
        Secret { path, what: "a registry's token", holds: Holds::After(words) }
    }
    const CLOUD: &str = "cloud credentials";
    const KEYRING: &str = "a keyring";
    const WALLET: &str = "a wallet";
    const BROWSER: &str = "a browser's profile";
    const PASSWORDS: &str = "passwords";
    const FORGE: &str = "a forge's token";
    &[
        Secret { path: ".ssh", what: "ssh keys", holds: Holds::PrivateKeys },
        all(".gnupg", "gpg keys"),
        all(".aws/credentials", CLOUD),
        all(".aws/cli", CLOUD),
        all(".aws/sso", CLOUD),
        Secret { path: ".aws/config", what: CLOUD, holds: Holds::After(&["aws_secret_access_key", "aws_session_token"]) },
        all(".config/gcloud", CLOUD),
        all(".azure", CLOUD),
        all(".kube", CLOUD),
        all(".local/share/keyrings", KEYRING),
        all(".local/share/kwalletd", KEYRING),
        all(".bitcoin", WALLET),
        all(".electrum", WALLET),
        all(".ethereum", WALLET),
        all(".config/solana", WALLET),
        all(".mozilla", BROWSER),
        all(".librewolf", BROWSER),
        all(".config/google-chrome", BROWSER),
        all(".config/chromium", BROWSER),
        all(".config/microsoft-edge", BROWSER),
        all(".config/BraveSoftware", BROWSER),
        all(".config/vivaldi", BROWSER),
        all(".config/opera", BROWSER),
        all("snap/firefox", BROWSER),
        all("snap/chromium", BROWSER),
        all(".var/app/org.mozilla.firefox", BROWSER),
        all(".var/app/com.google.Chrome", BROWSER),
        all(".var/app/org.chromium.Chromium", BROWSER),
        all(".thunderbird", "mail"),
        all(".password-store", PASSWORDS),
        all(".config/Bitwarden", PASSWORDS),
        all(".config/Bitwarden CLI", PASSWORDS),
        all(".config/1Password", PASSWORDS),
        all(".config/op", PASSWORDS),
        all(".config/keepassxc", PASSWORDS),
        all(".netrc", PASSWORDS),
        all(".git-credentials", PASSWORDS),
        all(".config/git/credentials", PASSWORDS),
        token(".npmrc", &["_authToken", "_auth", "_password"]),
        token(".cargo/credentials.toml", &["token", "secret-key"]),
        token(".cargo/credentials", &["token", "secret-key"]),
        token(".pypirc", &["password"]),
        token(".docker/config.json", &["\"auth\"", "\"identitytoken\"", "\"registrytoken\""]),
        Secret { path: ".config/gh/hosts.yml", what: FORGE, holds: Holds::After(&["oauth_token"]) },
        Secret { path: ".config/glab-cli/config.yml", what: FORGE, holds: Holds::After(&["token"]) },
    ]
};

/// A path below the home directory, and the variable that names another place for what is at or below it: from the manual of the program that
/// asks it.
const MOVED: &[(&str, &str)] = &[
    (".config", "XDG_CONFIG_HOME"),
    (".local/share", "XDG_DATA_HOME"),
    (".gnupg", "GNUPGHOME"),
    (".aws/credentials", "AWS_SHARED_CREDENTIALS_FILE"),
    (".aws/config", "AWS_CONFIG_FILE"),
    (".config/gcloud", "CLOUDSDK_CONFIG"),
    (".config/gcloud", "GOOGLE_APPLICATION_CREDENTIALS"),
    (".azure", "AZURE_CONFIG_DIR"),
    (".kube", KUBECONFIG),
    (".password-store", "PASSWORD_STORE_DIR"),
    (".config/Bitwarden CLI", "BITWARDENCLI_APPDATA_DIR"),
    (".netrc", "NETRC"),
    (".npmrc", "NPM_CONFIG_USERCONFIG"),
    (".npmrc", "npm_config_userconfig"),
    (".cargo", "CARGO_HOME"),
    (".docker", "DOCKER_CONFIG"),
    (".config/gh", "GH_CONFIG_DIR"),
    (".config/glab-cli", "GLAB_CONFIG_DIR"),
];

/// The variable that holds a list, as PATH does.
const KUBECONFIG: &str = "KUBECONFIG";

/// A secret in the place that a variable names.
#[derive(Debug)]
pub struct MovedSecret {
    pub secret: &'static Secret,
    pub variable: &'static str,
    pub path: PathBuf,
}

/// The places that variables name for secrets. `value` gives that of a variable; relative ones begin at `cwd`.
pub fn moved(cwd: &Path, value: impl Fn(&str) -> Option<OsString>) -> Vec<MovedSecret> {
    let mut found = Vec::new();
    for (above, variable) in MOVED {
        let Some(value) = value(variable).filter(|value| !value.is_empty()) else { continue };
        let places = if *variable == KUBECONFIG { std::env::split_paths(&value).collect() } else { vec![PathBuf::from(value)] };
        for secret in SECRETS {
            let Ok(below) = Path::new(secret.path).strip_prefix(above) else { continue };
            let paths = places.iter().filter(|place| !place.as_os_str().is_empty()).map(|place| cwd.join(place).join(below));
            // Without the slash that an empty path adds.
            let paths = paths.map(|path| path.components().collect());
            found.extend(paths.map(|path| MovedSecret { secret, variable, path }));
        }
    }
    found
}

/// The paths of [`SECRETS`] below a home directory.
pub fn usual(home: Option<&Path>) -> Vec<PathBuf> {
    home.map(|home| SECRETS.iter().map(|secret| home.join(secret.path)).collect()).unwrap_or_default()
}

impl Secret {
    /// Looks up what a path holds that the settings name; `None` if recant does not know it.
    pub fn at(path: &Path, home: Option<&Path>) -> Option<&'static Self> {
        let below = path.strip_prefix(home?).ok()?;
        SECRETS.iter().find(|secret| Path::new(secret.path) == below)
    }
}

impl Holds {
    /// True if a file with this content is secret.
    pub fn is_in(self, content: &[u8]) -> bool {
        match self {
            Self::All => true,
            Self::PrivateKeys => contains(content, b"PRIVATE KEY-----") || content.starts_with(b"PuTTY-User-Key-File"),
            Self::After(words) => words.iter().any(|word| has_value(content, word.as_bytes())),
        }
    }
}

/// True if ssh takes a file of this name for a private key, as ssh-keygen(1) makes them: some keys have no header that tells it.
pub fn names_private_key(name: &[u8]) -> bool {
    name.starts_with(b"id_") && !name.ends_with(b".pub")
}

fn contains(content: &[u8], part: &[u8]) -> bool {
    content.windows(part.len()).any(|window| window == part)
}

/// True if the word is followed by `=` or `:` and a value that names no variable.
fn has_value(content: &[u8], word: &[u8]) -> bool {
    let mut ends = (0..content.len()).filter(|start| content[*start..].starts_with(word)).map(|start| start + word.len());
    ends.any(|end| {
        let rest = content[end..].trim_ascii_start();
        // The word itself may stand in quotes.
        let rest = rest.strip_prefix(b"\"").or(rest.strip_prefix(b"'")).unwrap_or(rest).trim_ascii_start();
        let Some((b'=' | b':', value)) = rest.split_first() else { return false };
        let line = value.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let value = line.trim_ascii().trim_ascii_start();
        let value = value.strip_prefix(b"\"").or(value.strip_prefix(b"'")).unwrap_or(value);
        !value.is_empty() && !value.starts_with(b"${") && !value.starts_with(b"\"") && !value.starts_with(b"'")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closes(path: &str, content: &str) -> bool {
        let secret = SECRETS.iter().find(|secret| secret.path == path).unwrap();
        secret.holds.is_in(content.as_bytes())
    }

    #[test]
    fn settings_of_a_registry_are_secret_only_with_a_token() {
        assert!(closes(".npmrc", "registry=https://r.example\n//r.example/:_authToken=npm_abc\n"));
        assert!(closes(".npmrc", "\"//r.example/:_authToken\" = npm_abc\n"));
        assert!(closes(".cargo/credentials.toml", "[registry]\n\"token\" = \"cio\"\n"));
        assert!(closes(".npmrc", "_auth = \"dXNlcjpwYXNz\""));
        assert!(!closes(".npmrc", "registry=https://r.example\nsave-exact=true\n"));
        assert!(!closes(".npmrc", "//r.example/:_authToken=${NPM_TOKEN}\n"));
        assert!(closes(".cargo/credentials.toml", "[registry]\ntoken = \"cio\"\n"));
        assert!(!closes(".cargo/credentials.toml", "[registry]\n"));
        assert!(closes(".pypirc", "[pypi]\nusername: __token__\npassword: pypi-abc\n"));
        assert!(!closes(".pypirc", "[distutils]\nindex-servers = pypi\n"));
        assert!(closes(".docker/config.json", r#"{"auths":{"ghcr.io":{"auth":"dTpw"}}}"#));
        assert!(!closes(".docker/config.json", r#"{"auths":{"ghcr.io":{"auth":""}},"credsStore":"secretservice"}"#));
    }

    #[test]
    fn the_page_of_settings_names_each() {
        let page = include_str!("../../docs/reference/settings.md");
        let missing: Vec<_> = SECRETS.iter().filter(|secret| !page.contains(&format!("`~/{}`", secret.path))).collect();
        assert!(missing.is_empty(), "{missing:?}");
        let unnamed: Vec<_> = MOVED.iter().filter(|(_, variable)| !page.contains(&format!("`{variable}`"))).collect();
        assert!(unnamed.is_empty(), "{unnamed:?}");
    }

    #[test]
    fn variables_name_other_places_of_secrets() {
        let places = |variable: &str, value: &str| {
            let found = moved(Path::new("/p"), |asked| (asked == variable).then(|| value.into()));
            found.into_iter().map(|moved| moved.path.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(places("KUBECONFIG", "/a:b::"), ["/a", "/p/b"]);
        assert_eq!(places("GNUPGHOME", "/a:b/"), ["/a:b"]);
        assert_eq!(places("DOCKER_CONFIG", "../d"), ["/p/../d/config.json"]);
        assert_eq!(places("CARGO_HOME", "/c"), ["/c/credentials.toml", "/c/credentials"]);
        assert!(places("NETRC", "").is_empty());
    }

    #[test]
    fn a_private_key_is_told_by_its_content() {
        assert!(closes(".ssh", "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n"));
        assert!(!closes(".ssh", "ssh-ed25519 AAAA me@here\n"));
    }

    #[test]
    fn a_private_key_is_told_by_its_name_too() {
        assert!(names_private_key(b"id_ed25519") && names_private_key(b"id_work"));
        assert!(!names_private_key(b"id_ed25519.pub") && !names_private_key(b"known_hosts"));
    }

    #[test]
    fn settings_of_a_forge_are_secret_only_with_a_token() {
        assert!(closes(".config/gh/hosts.yml", "github.com:\n    users:\n        me:\n            oauth_token: gho_abc\n"));
        assert!(!closes(".config/gh/hosts.yml", "github.com:\n    user: me\n    git_protocol: ssh\n"));
        assert!(closes(".config/glab-cli/config.yml", "hosts:\n    gitlab.com:\n        token: glpat-abc\n"));
        let comment = "# Your access token. To get one, read https://gitlab.com/personal_access_tokens/.";
        assert!(!closes(".config/glab-cli/config.yml", &format!("hosts:\n    gitlab.com:\n        {comment}\n        token:\n")));
    }
}
