//! Real repositories of git, with recant beside them.

use std::path::Path;

use serde_json::json;

use crate::common::{self, Said, World};
use crate::desk::{self, Desk, each};

/// Whether there is a git to try it with; says what is skipped.
fn has_git() -> bool {
    let has_it = World::new().program("git", ["--version"]).command().output().is_ok();
    if !has_it {
        common::skip("git makes the repositories");
    }
    has_it
}

/// Desks with a repository, where git is here and commands can be held.
fn each_with_git(test: impl Fn(&Desk)) {
    if has_git() && common::can_run() {
        each(|desk| {
            desk_with_git(desk);
            test(desk);
        });
    }
}

/// Runs git in a directory of the tree; gives what it printed.
fn git(world: &World, directory: &str, words: &str) -> String {
    let said = world.program("git", words.split(' ')).cwd(world.path(directory)).run().ok();
    said.stdout().trim_end().to_owned()
}

/// A repository with these files in a world of its own; `None` where there is no git, which is said.
fn with_git(files: &[(&str, &str)]) -> Option<World> {
    has_git().then(|| with_git_on(&std::env::temp_dir(), files))
}

fn with_git_on(directory: &Path, files: &[(&str, &str)]) -> World {
    let mut world = World::on(directory);
    world.set("GIT_CONFIG_NOSYSTEM", "1");
    for who in ["AUTHOR", "COMMITTER"] {
        world.set(&format!("GIT_{who}_NAME"), "Ann").set(&format!("GIT_{who}_EMAIL"), "ann@example.org");
    }
    repository(&world, "", files);
    world
}

fn repository(world: &World, directory: &str, files: &[(&str, &str)]) {
    world.mkdir(directory);
    git(world, directory, "init -q -b main .");
    for (name, text) in files {
        world.write(Path::new(directory).join(name), text);
    }
    git(world, directory, "add -A");
    git(world, directory, "commit -q -m first");
}

/// A commit of one more file.
fn commit(world: &World, directory: &str, name: &str) -> String {
    world.write(Path::new(directory).join(name), name);
    git(world, directory, "add -A");
    git(world, directory, &format!("commit -q -m {name}"));
    git(world, directory, "rev-parse HEAD")
}

fn create(world: &World, words: &str) -> Said {
    world.recant(&format!("snapshot create {words}")).ok()
}

fn restore(world: &World, words: &str) -> Said {
    world.recant(&format!("snapshot restore {words}"))
}

#[test]
fn a_restore_leaves_commits_and_reflog_alone() {
    let Some(world) = with_git(&[("f", "1")]) else { return };
    let said = create(&world, "--preset dev");
    assert!(said.stderr().contains("; without .git"), "{said}");
    world.recant("snapshot show last").ok();
    world.write("f", "2");
    let head = commit(&world, "", "more");
    let reflog = git(&world, "", "reflog");
    restore(&world, "last").ok();
    assert_eq!((world.read("f"), world.exists("more")), ("1".into(), false));
    assert_eq!((git(&world, "", "rev-parse HEAD"), git(&world, "", "reflog")), (head, reflog));
    git(&world, "", "fsck --strict");
    let show = world.recant("snapshot show last").ok();
    assert!(show.stdout().contains("without") && show.stdout().contains("/tree/.git"), "{show}");
    let refused = restore(&world, "last --with-vcs").with(1);
    assert!(refused.stderr().contains("taken without --with-vcs"), "{refused}");
    // What was named is said to stay.
    assert!(restore(&world, "last .git/HEAD").with(4).stdout().contains("version control's own"));
}

#[test]
fn a_snapshot_that_kept_git_leaves_it_alone_unless_asked() {
    let Some(world) = with_git(&[("f", "1")]) else { return };
    create(&world, "--with-vcs");
    let then = world.manifest();
    world.write("f", "2");
    let head = commit(&world, "", "more");
    let said = restore(&world, "0").ok();
    assert!(said.stderr().contains(".git: snapshot 0 has it, too"), "{said}");
    assert_eq!((git(&world, "", "rev-parse HEAD"), world.read("f")), (head, "1".into()));
    let diff = world.recant("snapshot diff 0 --name-only").ok();
    assert_eq!(diff.stdout(), "", "{diff}");
    assert!(world.recant("snapshot diff 0 --name-only --with-vcs").ok().stdout().contains(".git/refs/heads/main"));
    let said = restore(&world, "0 --with-vcs").ok();
    assert!(said.stderr().contains("back by 1 commit"), "{said}");
    then.assert_same(&world.manifest(), "all of it");
    // One that keeps less takes nothing of it for deleted; one that keeps more rests on what is there.
    let less = world.recant("snapshot create --json").ok().json();
    assert_eq!(less["counts"]["deleted"], 0, "{less}");
    commit(&world, "", "again");
    create(&world, "--with-vcs");
    let again = world.manifest();
    commit(&world, "", "once-more");
    restore(&world, "2 --with-vcs").ok();
    again.assert_same(&world.manifest(), "after one with another rule");
    restore(&world, "0 --with-vcs").ok();
    then.assert_same(&world.manifest(), "the older one");
    restore(&world, "1").ok();
    then.assert_same(&world.manifest(), "which the one without it leaves so");
    world.recant("snapshot verify").ok();
}

#[test]
fn a_repository_that_came_since_stays_whole_and_is_named() {
    let Some(world) = with_git(&[("f", "1"), ("plain/inner", "1")]) else { return };
    repository(&world, "known", &[("g", "1")]);
    create(&world, "");
    repository(&world, "new/deep", &[("h", "1")]);
    repository(&world, "plain", &[("more", "1")]);
    world
        .write("f", "2")
        .write("plain/inner", "2")
        .write("known/g", "2")
        .write("new/loose", "x")
        .write("new/deep/untracked", "x");
    let (plain, deep) = (common::manifest(&world.path("plain")), common::manifest(&world.path("new/deep")));
    let said = restore(&world, "0").with(4);
    plain.assert_same(&common::manifest(&world.path("plain")), "a directory that became a repository");
    deep.assert_same(&common::manifest(&world.path("new/deep")), "a new one");
    assert_eq!((world.read("f"), world.read("known/g"), world.exists("new/loose")), ("1".into(), "1".into(), false));
    for directory in ["plain", "new/deep"] {
        assert!(said.stdout().contains(&format!(" {directory}: it is a repository made since")), "{said}");
    }
    assert!(said.stdout().contains(" new: the directory stays, because "), "{said}");
    // Named by hand as well.
    let said = restore(&world, "0 plain/inner").with(4);
    assert!(said.stdout().contains(" plain/inner: it is a repository made since"), "{said}");
    // What is gone is named.
    world.remove("known");
    let said = restore(&world, "0").with(4);
    assert!(said.stdout().contains(" known/.git: it is gone, and the snapshot does not have it"), "{said}");
    assert_eq!(world.read("known/g"), "1");
}

#[test]
fn a_bare_repository_is_version_control_s_own_whatever_its_name() {
    let Some(world) = with_git(&[("f", "1"), ("became/inner", "1")]) else { return };
    git(&world, "", "clone -q --bare . known");
    // What has some of its parts is a directory like any other.
    world.mkdir("plain/objects").mkdir("plain/refs").write("plain/mine", "1");
    let said = create(&world, "");
    assert!(said.stderr().contains("without .git and 1 more"), "{said}");
    for new in ["new", "became", "deep/new.git"] {
        git(&world, "", &format!("clone -q --bare . {new}.tmp"));
        world.mkdir(new);
        world.program("sh", ["-c", "cp -a $0.tmp/. $0 && rm -r $0.tmp", new]).run().ok();
    }
    commit(&world, "", "pushed");
    for repository in ["known", "new"] {
        git(&world, "", &format!("push -q {repository} main"));
    }
    world.write("f", "2").write("plain/mine", "2").write("plain/HEAD/loose", "x");
    let repositories = ["known", "new", "became", "deep/new.git"];
    let before = repositories.map(|directory| common::manifest(&world.path(directory)));
    let said = restore(&world, "0").with(4);
    for (directory, before) in repositories.iter().zip(before) {
        before.assert_same(&common::manifest(&world.path(directory)), directory);
        let is_new = *directory != "known";
        assert_eq!(said.stdout().contains(&format!(" {directory}: it is a repository made since")), is_new, "{said}");
    }
    assert_eq!((world.read("f"), world.read("plain/mine"), world.exists("plain/HEAD")), ("1".into(), "1".into(), false));
    // What is gone is named.
    world.remove("known");
    let said = restore(&world, "0").with(4);
    assert!(said.stdout().contains(" known: it is gone, and the snapshot does not have it"), "{said}");
}

#[test]
fn with_vcs_a_snapshot_keeps_a_bare_repository_and_a_restore_without_leaves_it_alone() {
    let Some(world) = with_git(&[("f", "1")]) else { return };
    git(&world, "", "clone -q --bare . known");
    create(&world, "--with-vcs");
    let then = git(&world, "known", "rev-parse main");
    let now = commit(&world, "", "pushed");
    git(&world, "", "push -q known main");
    let said = restore(&world, "0").ok();
    assert!(said.stderr().contains("left as it is without --with-vcs"), "{said}");
    assert_eq!(git(&world, "known", "rev-parse main"), now);
    restore(&world, "0 --with-vcs").ok();
    assert_eq!(git(&world, "known", "rev-parse main"), then);
}

#[test]
fn a_file_that_leads_to_a_repository_is_version_control_s_own_as_well() {
    let Some(world) = with_git(&[("f", "1")]) else { return };
    create(&world, "");
    git(&world, "", "worktree add -q wt");
    world.write("wt/mine", "x");
    let said = restore(&world, "0").with(4);
    assert!(said.stdout().contains(" wt: it is a repository made since"), "{said}");
    assert_eq!((world.read("wt/mine"), git(&world, "wt", "status --short")), ("x".into(), "?? mine".into()));
}

#[test]
fn a_restore_that_moves_head_says_by_how_many_commits_and_asks() {
    let Some(world) = with_git(&[("f", "1")]) else { return };
    create(&world, "--with-vcs");
    let first = git(&world, "", "rev-parse HEAD");
    for name in ["a", "b", "c"] {
        commit(&world, "", name);
    }
    let head = git(&world, "", "rev-parse HEAD");
    git(&world, "", "pack-refs --all");
    let said = restore(&world, "0 --with-vcs --dry-run").ok();
    assert!(said.stderr().contains(&format!("HEAD goes from {} to {}: back by 3 commits", &head[..10], &first[..10])), "{said}");
    // Where there is no git, that it moves is said.
    let bare = world.call(["snapshot", "restore", "0", "--with-vcs", "--dry-run"]).env("PATH", "/nowhere").run().ok();
    assert!(bare.stderr().contains("the number of commits is unknown: git is not here"), "{bare}");
    if world.program("script", ["-V"]).command().output().is_ok() {
        let command = format!("{} snapshot restore 0 --with-vcs", common::recant());
        let said = world.program("script", ["-qec", &command, "/dev/null"]).stdin("n\n").run().with(1);
        assert!(said.stdout().contains("back by 3 commits") && said.stdout().contains("would overwrite"), "{said}");
        assert_eq!(git(&world, "", "rev-parse HEAD"), head);
    }
    restore(&world, "0 --with-vcs").ok();
    assert_eq!((git(&world, "", "rev-parse HEAD"), git(&world, "", "status --short")), (first, String::new()));
    world.recant("rollback last").ok();
    assert_eq!(git(&world, "", "rev-parse HEAD"), head);
    git(&world, "", "fsck --strict");
}

#[test]
fn a_run_on_the_real_tree_keeps_what_its_command_committed() {
    if !has_git() {
        return;
    }
    // `run --in` opens /tmp, where no store may lie then.
    let world = with_git_on(Path::new("/var/tmp"), &[("f", "1")]);
    let head = git(&world, "", "rev-parse HEAD");
    let script = "echo 2 > f && git commit -q -am second";
    let said = world.call(["run", "--in", ".", "--", "sh", "-c", script]).run();
    if said.status == 125 {
        return common::skip("run --in cannot be had here");
    }
    said.ok();
    assert_ne!(git(&world, "", "rev-parse HEAD"), head);
    world.recant("rollback last").ok();
    assert_eq!((git(&world, "", "rev-parse HEAD"), git(&world, "", "status --short")), (head, String::new()));
    git(&world, "", "fsck --strict");
}

#[test]
fn a_run_asks_git_for_no_lock_that_it_can_do_without_unless_somebody_says_otherwise() {
    let print = ["--", "sh", "-c", "printf %s \"$GIT_OPTIONAL_LOCKS\""];
    for options in [&["run"][..], &["run", "--in", "."]] {
        let world = World::on(Path::new("/var/tmp"));
        let words = || options.iter().copied().chain(print);
        let said = world.call(words()).run();
        if said.status == 125 {
            common::skip(&format!("{options:?} cannot be had here"));
            continue;
        }
        assert_eq!(said.ok().stdout(), "0");
        assert_eq!(world.call(words()).env("GIT_OPTIONAL_LOCKS", "1").run().ok().stdout(), "1");
        assert_eq!(world.call(words()).env("GIT_OPTIONAL_LOCKS", "").run().ok().stdout(), "");
    }
}

/// A repository of the desk's user, old enough that a run takes no hash of what is in it.
fn desk_with_git(desk: &Desk) {
    let script = "git init -q -b main . && git config user.name Ann && git config user.email ann@example.org
                  echo 1 > f; echo 1 > g; git add -A; git commit -q -m first";
    desk.made_before(script, ".git/index");
}

/// A file looks changed to git without being so, and git writes down that it is not.
fn refresh(desk: &Desk) {
    let before = desk.world.bytes(".git/index");
    desk.bare(&desk.world.tree(), &format!("touch -d @{} g; git status > /dev/null", 1_000_000_000 + before.len()));
    if before == desk.world.bytes(".git/index") {
        desk.bare(&desk.world.tree(), "touch -d @1000000000 g; git status > /dev/null");
    }
    assert_ne!(before, desk.world.bytes(".git/index"), "git rewrites its index");
}

fn said_by_git(desk: &Desk, words: &str) -> String {
    desk.give(desk.world.program("git", words.split(' '))).run().ok().stdout().trim_end().to_owned()
}

#[test]
fn looking_at_a_repository_in_a_run_leaves_no_session() {
    each_with_git(|desk| {
        desk.bare(&desk.world.tree(), "touch -d @1000000000 g");
        for locks in ["", "GIT_OPTIONAL_LOCKS=1 "] {
            let said = desk.run(&format!("{locks}git status --short")).ok();
            assert!(said.stderr().contains("no file change"), "{said}");
        }
        assert_eq!(desk.ids(), [""; 0]);
        // Beside a change of something else the index is none.
        desk.run("GIT_OPTIONAL_LOCKS=1 git status --short; echo 2 > f").ok();
        assert_eq!(desk.paths(&desk.id()), ["f"]);
    });
}

#[test]
fn an_index_that_git_rewrote_is_no_conflict_at_commit_rollback_and_redo() {
    each_with_git(|desk| {
        let tree = |name: &str| said_by_git(desk, name);
        desk.run("echo 2 > f; git add f").ok();
        refresh(desk);
        let refreshed = desk.world.manifest();
        desk.recant("diff last --stat").ok();
        desk.recant("commit last").ok();
        desk.recant("rollback last").ok();
        refreshed.assert_same(&desk.world.manifest(), "what was on the tree at the commit");
        desk.recant("redo last").ok();
        assert_eq!(tree("diff --cached --name-only"), "f");
        for _ in 0..2 {
            refresh(desk);
            desk.recant("rollback last --dry-run").ok();
            desk.recant("rollback last").ok();
            assert_eq!((tree("status --short"), desk.world.read("f")), (String::new(), "1\n".into()), "{:?}", desk.who);
            tree("fsck --strict");
            refresh(desk);
            desk.recant("diff last --stat").ok();
            desk.recant("redo last").ok();
            assert_eq!((tree("status --short"), desk.world.read("f")), ("M  f".into(), "2\n".into()), "{:?}", desk.who);
            tree("fsck --strict");
        }
        desk.recant("rollback last").ok();
        desk.world.assert_tidy("taken back");
    });
}

#[test]
fn a_repository_that_a_run_made_is_taken_back_after_git_looked_at_it() {
    if !has_git() || !common::can_run() {
        return;
    }
    each(|desk| {
        let before = desk.world.manifest();
        let made = "git init -q -b main . && git config user.name Ann && git config user.email ann@example.org
                    echo 1 > f; echo 1 > g; git add -A; git commit -q -m first";
        desk.run(made).ok();
        desk.recant("commit last").ok();
        refresh(desk);
        let said = desk.recant("rollback last").ok();
        before.without_directory_times().assert_same(&desk.world.manifest().without_directory_times(), &said.stdout());
    });
}

#[test]
fn a_conflict_of_an_index_is_shown_by_the_entries_that_differ() {
    each_with_git(|desk| {
        desk.run("echo 2 > f; git add f; git update-index --chmod=+x g; echo mine > new; git add new").ok();
        desk.bare(&desk.world.tree(), "echo other > h; git add h");
        let id = desk.id();
        let shown = || desk.recant("diff last --conflicts").ok().stdout();
        let held = format!("new: only held in {}", &id[id.len() - 4..]);
        let said = shown();
        let lines =
            |said: &str| said.lines().filter_map(|line| Some(line.split_once("/.git/index: ")?.1.to_owned())).collect::<Vec<_>>();
        let ours = "what is held, from the same original";
        assert_eq!(lines(&said)[1..], ["h: only on the tree now", ours, "f: content", "g: mode", &held], "{said}");
        assert!(said.contains("Binary files"), "{said}");
        // Of many the first are shown.
        desk.bare(&desk.world.tree(), "for i in $(seq 10 40); do echo $i > a$i; done; git add a*");
        let said = shown();
        assert_eq!(lines(&said)[20..23], ["a29: only on the tree now", "... and 12 more", ours], "{said}");
        // What is not known here, git knows.
        desk.bare(&desk.world.tree(), "git update-index --split-index");
        assert_eq!(lines(&shown())[1..3], ["git status shows what it means to git", ours]);
    });
}

#[test]
fn what_somebody_added_to_the_index_is_a_conflict_as_before() {
    each_with_git(|desk| {
        desk.run("echo 2 > f; git add f").ok();
        desk.bare(&desk.world.tree(), "echo other > h; git add h");
        let said = desk.recant("commit last").with(3);
        assert!(said.stderr().contains("/.git/index"), "{said}");
        desk.bare(&desk.world.tree(), "git rm -q --cached h");
        desk.recant("commit last").ok();
        desk.bare(&desk.world.tree(), "git add h");
        let before = desk.world.manifest();
        let said = desk.recant("rollback last").with(3);
        assert!(said.stderr().contains("/.git/index"), "{said}");
        before.assert_same(&desk.world.manifest(), "nothing was changed");
        // An index that is gone, or that is none, is one too.
        desk.bare(&desk.world.tree(), "git rm -q --cached h; mv .git/index kept; echo none > .git/index");
        desk.recant("rollback last").with(3);
        desk.bare(&desk.world.tree(), "rm .git/index");
        desk.recant("rollback last").with(3);
        desk.bare(&desk.world.tree(), "mv kept .git/index");
        desk.recant("rollback last").ok();
    });
}

#[test]
fn on_the_real_tree_too_git_s_rewriting_is_no_change_and_no_conflict() {
    if !has_git() {
        return;
    }
    let who = if desk::is_root() { desk::Who::Root } else { desk::Who::User };
    let desk = Desk::of(who, World::on(Path::new("/var/tmp")));
    desk_with_git(&desk);
    desk.bare(&desk.world.tree(), "touch -d @1000000000 g");
    let looked = "GIT_OPTIONAL_LOCKS=1 git status --short";
    let said = desk.call(["run", "--in", ".", "--", "sh", "-c", looked]).run();
    if said.status == 125 {
        return common::skip("run --in cannot be had here");
    }
    assert!(said.ok().stderr().contains("no file change"));
    desk.call(["run", "--in", ".", "--", "sh", "-c", "echo 2 > f; git add f"]).run().ok();
    refresh(&desk);
    desk.recant("rollback last").ok();
    assert_eq!((said_by_git(&desk, "status --short"), desk.world.read("f")), (String::new(), "1\n".into()));
    said_by_git(&desk, "fsck --strict");
    // So is what a restore put.
    desk.recant("snapshot create --with-vcs").ok();
    desk.bare(&desk.world.tree(), "echo 3 > f; git add f");
    desk.recant("snapshot restore last --with-vcs").ok();
    refresh(&desk);
    desk.recant("rollback last").ok();
    assert_eq!((said_by_git(&desk, "status --short"), desk.world.read("f")), ("M  f".into(), "3\n".into()));
}

#[test]
fn a_session_is_exported_where_git_rewrote_its_index_since_and_committed_elsewhere() {
    each_with_git(|desk| {
        desk.run("echo 2 > f; git add f").ok();
        refresh(desk);
        let binary = desk.binary.display();
        desk.bare(desk.world.root(), &format!("{binary} session export {} > stream", desk.id()));
        desk.recant("discard last -y").ok();
        refresh(desk);
        let elsewhere = |words: &str| desk.recant(&format!("--store {}/elsewhere {words}", desk.world.root().display()));
        desk.bare(&desk.world.tree(), &format!("{binary} --store ../elsewhere session import < ../stream"));
        elsewhere("commit last").ok();
        assert_eq!(said_by_git(desk, "status --short"), "M  f");
        refresh(desk);
        elsewhere("rollback last").ok();
        assert_eq!(said_by_git(desk, "status --short"), "");
    });
}

#[test]
fn git_clones_a_directory_in_each_step_whatever_the_names_of_its_files() {
    each_with_git(|desk| {
        // One repository's files have one name each, the other's two, as after a clone outside.
        desk.made("cp -a .git one; cp -a .git two; cp -al two third");
        for step in 1..4 {
            let script = format!(
                "for from in one two; do
                     git clone -q $from a{step}$from && git clone -q $from b{step}$from || exit 1
                     git -c protocol.file.allow=always submodule add -q \"$PWD/$from\" c{step}$from || exit 1
                     git -C b{step}$from fsck --strict || exit 1
                 done
                 cp -al one l{step} && link one/HEAD name{step} && test $(stat -c %h name{step}) -gt 1"
            );
            desk.held("--session s", &script).run().ok();
        }
        desk.recant("commit s").ok();
        for clone in ["a1one", "b2two", "c3two", "a3one"] {
            assert_eq!(said_by_git(desk, &format!("-C {clone} fsck --strict")), "");
            assert_eq!(desk.world.read(format!("{clone}/f")), "1\n");
        }
        let before = desk.world.manifest();
        desk.recant("rollback s").ok();
        desk.recant("redo s").ok();
        before.assert_same(&desk.world.manifest(), "taken back and done again");
    });
}

#[test]
fn a_summary_says_what_git_did_and_has_what_git_tracks_by_itself() {
    each_with_git(|desk| {
        desk.bare(
            &desk.world.tree(),
            "mkdir build; echo 1 > build/config; echo 1 > build/rules; echo 1 > README; git add .; git commit -qm two",
        );
        desk.run(
            "echo 2 > README; echo 2 > build/config; echo 2 > build/rules; touch build/made build/more; git checkout -qb topic; \
             echo x > x; git add README x; git commit -qm three; echo y >> x; git commit -qam four; git tag v1; echo z > z; git add z; \
             git stash -q; git branch other; echo '#!/bin/sh' > .git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit",
        )
        .ok();
        let said = desk.recant("diff last --stat").ok().stdout();
        let before =
            |text: &str| said.lines().position(|line| line.starts_with(text)).unwrap_or_else(|| panic!("{text}: {said}"));
        let order = [" .git/hooks/pre-commit | 1 +", " README", " build/config", " build/rules", " x ", " build/ ", " .git/ "]
            .map(before);
        assert!(order.is_sorted() && order[0] == 0, "{said}");
        let summary = desk.recant("diff last --stat --json").ok().json()["summary"].clone();
        let git = json!([
            {"act": "head", "branch": "topic"},
            {"act": "branch_created", "branch": "other"},
            {"act": "branch_created", "branch": "topic"},
            {"act": "commits", "branch": "topic", "count": 2},
            {"act": "tags", "count": 1},
            {"act": "stash"},
            {"act": "index"}
        ]);
        let groups = summary["groups"].as_array().expect("a list");
        assert_eq!((groups.len(), &groups[1]["git"]), (2, &git), "{summary}");
        assert_eq!((&groups[0]["kind"], &groups[0]["created"], &groups[0]["modified"]), (&"built".into(), &2.into(), &0.into()));

        desk.recant("commit last").ok();
        desk.run("git checkout -q main; git branch -qD other; git commit -q --amend -m 2; git pack-refs --all; git checkout -q --detach topic").ok();
        let groups = desk.recant("diff last --stat --json").ok().json()["summary"]["groups"].clone();
        let git = json!([
            {"act": "head"},
            {"act": "commits_lost", "branch": "main"},
            {"act": "branch_moved", "branch": "main", "why": "commit (amend): 2"},
            {"act": "branch_deleted", "branch": "other"}
        ]);
        assert_eq!(groups[0]["git"], git, "{groups}");
    });
}

#[test]
fn the_loss_of_history_stands_before_all_else() {
    each_with_git(|desk| {
        desk.bare(&desk.world.tree(), "for n in 1 2 3; do echo c$n > f; git commit -qam c$n; done");
        let lost = |script: &str, history: &str, group: &str| {
            desk.held("-n s", &format!("{script}; mkdir -p .git/hooks; echo x > .git/hooks/post-merge")).run().ok();
            let said = desk.recant("diff s --stat").ok().stdout();
            let line = said.lines().next().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(line, format!(".git/ | history: {history}"), "{said}");
            assert!(said.contains(group), "{said}");
            for shows in ["show s", "commit s --dry-run"] {
                let said = desk.recant(shows).ok();
                let told = said.stdout() + &said.stderr();
                let at = |words: &str| told.find(words).unwrap_or_else(|| panic!("{shows}: {words}: {said}"));
                assert!(at(history) < at("post-merge"), "{said}");
            }
            desk.recant("discard s -y").ok();
        };
        lost("git reset -q --hard HEAD~3", "main loses commits", "main moved (reset: moving to HEAD~3");
        lost(
            "git reset -q --hard HEAD~1; echo new > new; git add new; git commit -qm new",
            "main loses commits",
            "main moved (commit: new), 1 commit",
        );
        let anew = "rm -rf .git; git init -qb main; git add .; git -c user.name=a -c user.email=a@b commit -qm all";
        lost(anew, "main is replaced", "main moved (commit (initial)");
        // Refs that are packed do not change: the log tells from where a branch was moved.
        desk.bare(&desk.world.tree(), "git gc -q");
        lost("git reset -q --hard HEAD~2", "main loses commits", "main moved (reset: moving to HEAD~2");
        // What goes forward loses nothing.
        desk.run("git checkout -qb topic; echo t > t; git add t; git commit -qm t; git checkout -q main; git merge -q topic")
            .ok();
        let said = desk.recant("diff last --stat").ok().stdout();
        assert!(!said.contains("history") && said.contains("main moved (merge t"), "{said}");
    });
}

#[test]
fn git_applies_a_relative_patch_inside_a_repository() {
    each_with_git(|desk| {
        desk.bare(&desk.world.tree(), "mkdir sub; echo 1 > 'sub/a b'; echo gone > gone; git add .; git commit -qm two");
        desk.run(
            "echo 2 > f; echo 2 > 'sub/a b'; rm gone; mkdir -p new/deep; printf 'x\\0' > new/deep/bin; echo new > new/file; chmod 600 g; \
             echo elsewhere > ../elsewhere; git add -A . ; git commit -qm three",
        )
        .ok();
        let relative = |options: &str, directory: &str| {
            let words = format!("diff last {options}");
            desk.call(words.split(' ')).cwd(desk.world.path(directory)).run().ok()
        };
        let said = relative("--relative new/file f sub gone", "");
        assert!(!said.stdout().contains("tree/") && said.stdout().contains("--- a/sub/a b\t\n"), "{said}");
        // From a directory below it is the same.
        assert_eq!(relative("--relative", "sub").stdout(), relative("--relative", "").stdout());
        let whole = relative("--relative", "");
        assert!(whole.stderr().contains("in git's own files, not shown") && !whole.stdout().contains(".git/"), "{whole}");
        let below = relative("--relative=sub", "").stdout();
        assert!(below.starts_with("diff --git \"a/a b\" \"b/a b\"") || below.starts_with("diff --git a/a b b/a b\n"), "{below}");
        assert_eq!(below.matches("diff --git").count(), 1, "{below}");
        let patch = desk.world.root().join("patch");
        desk.world.write(&patch, said.stdout());
        said_by_git(desk, &format!("apply {}", patch.display()));
        assert_eq!(said_by_git(desk, "status --short"), " M f\n D gone\n M \"sub/a b\"\n?? new/");
        for (path, content) in [("f", "2\n"), ("sub/a b", "2\n"), ("new/file", "new\n")] {
            assert_eq!(desk.world.read(path), content, "{path}");
        }
    });
}
