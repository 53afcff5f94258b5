//! The layouts of the screen, drawn on a terminal in memory.

use std::sync::Arc;

use insta::assert_snapshot;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::{Color, Modifier};

use super::draw;
use super::sheet::{Kind, Line, Sheet};
use super::state::{Counted, Screen};
use super::theme::Theme;
use super::world::{Act, AllowedActs, Contents, Decision, Ended, Look, Place, Planned, Program, Row, ViewedChanges, World};
use crate::compare::{Pick, Picked, Taken};
use crate::fs::{AbsPath, Time};
use crate::session::{Before, Change, Marks, Side};
use crate::tree::{Hash, Meta, Object, State, What};

/// A session of some changes, none of which is on any disk.
struct Paper(Vec<Change>);

fn file(size: u64) -> Object {
    let meta = Meta { mode: 0o644, uid: 0, gid: 0, mtime: Time { s: 0, ns: 0 }, xattrs: Default::default() };
    Some(State { what: What::File { size, hash: None, index: None }, meta })
}

fn change(path: &str, before: Object, after: Object) -> Change {
    let path = AbsPath::parse(path.as_bytes()).unwrap();
    let before = Before { object: before, print: None };
    Change { n: 0, path, before, after, marks: Marks::default(), step: None, from: None, original: None }
}

impl Paper {
    fn some() -> Self {
        Self(vec![
            change("/p/a.txt", file(10), file(2_000)),
            change("/p/conflict", file(10), file(11)),
            change("/p/dir/gone", file(10), None),
            change("/p/dir/new", None, file(12)),
        ])
    }
}

fn line(kind: Kind, (old, new): (usize, usize), (block, at): (usize, usize), pieces: &[(bool, &str)]) -> Line {
    Line { kind, old, new, block, at, text: pieces.iter().map(|(marked, text)| (*marked, (*text).to_owned())).collect() }
}

struct Sheets;

impl Contents for Sheets {
    fn sheet(&mut self, i: usize) -> Sheet {
        let mut sheet = Sheet::failed("");
        sheet.lines = match i {
            0 => vec![
                line(Kind::Both, (1, 1), (0, 0), &[(false, "one")]),
                line(Kind::Old, (2, 0), (1, 1), &[(false, "the "), (true, "old"), (false, " word")]),
                line(Kind::New, (0, 2), (1, 2), &[(false, "the "), (true, "new"), (false, " word")]),
                line(Kind::Gap, (0, 0), (0, 0), &[(false, "13 unchanged lines")]),
                line(Kind::New, (0, 17), (2, 1), &[(false, "    added")]),
                line(Kind::Both, (17, 18), (0, 0), &[(false, "end")]),
            ],
            1 => vec![
                line(Kind::Conflict, (0, 0), (0, 0), &[(false, "changed since: conflict")]),
                line(Kind::Right, (0, 0), (0, 0), &[(false, "setuid, for root")]),
            ],
            2 => vec![line(Kind::Old, (1, 0), (1, 1), &[(false, "bye")])],
            _ => vec![line(Kind::New, (0, 1), (1, 1), &[(false, "hello")])],
        };
        sheet.blocks = sheet.lines.iter().map(|line| line.block).max().unwrap_or(0);
        sheet.counts = (i != 1).then(|| {
            let of = |kind: Kind| sheet.lines.iter().filter(|line| line.kind == kind).count();
            (of(Kind::New), of(Kind::Old))
        });
        sheet
    }
}

impl World for Paper {
    fn look(&mut self, _: &Place) -> Look {
        let changes = Arc::new(self.0.clone());
        let sides = Arc::new(vec![Side::Never; changes.len()]);
        Arc::new(move |mark| {
            let may = AllowedActs { commit: true, discard: true, choose: true, steps: true, ..AllowedActs::default() };
            let seen = ViewedChanges {
                title: "session k3fa".into(),
                state: "pending".into(),
                about: "make install".into(),
                changes: Arc::clone(&changes),
                sides: Arc::clone(&sides),
                notes: vec!["not held: /mnt".into()],
                may,
                mark: Hash::of(b"paper"),
                is_running: false,
                contents: Arc::new(|serve| {
                    serve(&mut Sheets);
                    Ok(())
                }),
            };
            Ok(mark.is_none().then_some(seen))
        })
    }

    fn pick(&mut self, seen: &ViewedChanges, _: Act, parts: Vec<(usize, Taken)>) -> Result<Planned, String> {
        let pick = |(i, taken): (usize, Taken)| Pick { path: seen.changes[i].path.clone(), taken, seen: Hash::of(b"seen") };
        Ok(Planned { picked: Picked(parts.into_iter().map(pick).collect()), notes: Vec::new() })
    }

    fn perform(&mut self, _: Decision) -> Ended {
        Ended::Refused(vec!["this is paper".into()])
    }

    fn last(&self) -> Option<String> {
        None
    }

    fn steps(&mut self) -> Result<(Vec<String>, Vec<Row>), String> {
        let row = |n: u64, is_head: bool, command: &str| Row { n, is_head, columns: vec![n.to_string(), command.to_owned()] };
        let rows = vec![row(2, true, "make install"), row(1, false, "make"), row(0, false, "the tree as it was")];
        Ok((vec!["STEP".into(), "COMMAND".into()], rows))
    }

    fn turns(&mut self) -> Result<(Vec<String>, Vec<Row>), String> {
        Err("there are none".into())
    }

    fn open(&mut self, _: &ViewedChanges, _: usize, _: Program) -> Ended {
        Ended::Done(Vec::new())
    }
}

/// The screen of a session after these keys, in a window of this size. Each key waits for what is read.
fn drawn(mut paper: Paper, is_colored: bool, (width, height): (u16, u16), keys: &str) -> Buffer {
    let show = Box::new(|path: &AbsPath| path.to_string().trim_start_matches("/p/").to_owned());
    let mut screen = Screen::open(&mut paper, show, Theme::new(is_colored)).unwrap();
    let mut terminal = ratatui::Terminal::new(TestBackend::new(width, height)).unwrap();
    let mut codes = keys.chars().map(|c| match c {
        '\n' => KeyCode::Enter,
        '\t' => KeyCode::Tab,
        c => KeyCode::Char(c),
    });
    loop {
        terminal.draw(|frame| draw::screen(&mut screen, frame)).unwrap();
        while screen.is_waiting() || screen.counted.contains(&Counted::Unknown) {
            screen.take_loaded();
            std::thread::yield_now();
        }
        terminal.draw(|frame| draw::screen(&mut screen, frame)).unwrap();
        match codes.next() {
            Some(code) => screen.press(KeyEvent::new(code, KeyModifiers::NONE)),
            None => return terminal.backend().buffer().clone(),
        }
    }
}

/// The rows of a screen, without blanks at their ends.
fn text(buffer: &Buffer) -> String {
    let row = |y: u16| (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned() + "\n";
    (0..buffer.area.height).map(row).collect()
}

/// The colour and the modifiers of the cell in which a text begins.
fn style(buffer: &Buffer, what: &str) -> (Color, Modifier) {
    let rows = text(buffer);
    let (y, row) = rows.lines().enumerate().find(|(_, row)| row.contains(what)).unwrap_or_else(|| panic!("no {what}:\n{rows}"));
    let x = row[..row.find(what).unwrap()].chars().count();
    let cell = &buffer[(u16::try_from(x).unwrap(), u16::try_from(y).unwrap())];
    (cell.fg, cell.modifier)
}

const USUAL: (u16, u16) = (80, 24);

#[test]
fn the_tree_stands_beside_the_difference() {
    assert_snapshot!(text(&drawn(Paper::some(), true, USUAL, "j")), @"
     session k3fa  pending  make install                        4 changes  +1 ~2 -1
    [ ] ▾ /p/                  4 +3 -2│ a.txt                    modified, 2 blocks
    [ ]     ~ a.txt              +2 -1│     1  1  one
    [ ]     ~ conflict            11 B│[ ]  2    -the old word
    [ ]   ▾ dir/               2 +1 -1│  │     2 +the new word
    [ ]       - gone                -1│    ⋯ 13 unchanged lines
    [ ]       + new                 +1│[ ]    17 +    added
                                      │    17 18  end
                                      │
                                      │
                                      │
                                      │
                                      │
                                      │
                                      │
                                      │
                                      │
                                      │
                                      │
                                      │
                                      │
                                      │
     1 thing not among the changes: i
     Space choose  Enter look  A all  c commit  d discard  s steps  ? help  q quit
    ");
}

#[test]
fn in_80_columns_the_difference_has_the_whole_width() {
    assert_snapshot!(text(&drawn(Paper::some(), true, USUAL, "j\t l")), @"
     session k3fa  pending  make install              4 changes  +1 ~2 -1  1 chosen
     a.txt                                                       modified, 2 blocks
         1  1  one
    [x]  2    -the old word
    [x]     2 +the new word
        ⋯ 13 unchanged lines
    [ ]    17 +    added
        17 18  end














     Space chooses a line
     Space choose  ] next block  | side by side  l lines  c commit  ? help  q back
    ");
}

#[test]
fn in_140_columns_the_sides_stand_beside_each_other_and_the_tree() {
    assert_snapshot!(text(&drawn(Paper::some(), true, (140, 40), "j\t|")), @"
     session k3fa  pending  make install                                                                                    4 changes  +1 ~2 -1
    [ ] ▾ /p/                                    4 +3 -2│ a.txt                                                              modified, 2 blocks
    [ ]     ~ a.txt                                +2 -1│     1  one                                  │ 1  one
    [ ]     ~ conflict                              11 B│[ ]  2 -the old word                         │ 2 +the new word
    [ ]   ▾ dir/                                 2 +1 -1│    ⋯ 13 unchanged lines
    [ ]       - gone                                  -1│[ ]                                          │17 +    added
    [ ]       + new                                   +1│    17  end                                  │18  end
                                                        │
                                                        │
                                                        │
                                                        │
                                                        │
                                                        │
                                                        │
                                                        │
                                                        │
                                                        │
                                                        │
                                                        │
                                                        │
                                                        │
                                                        │
                                                        │
                                                        │
                                                        │
                                                        │
                                                        │
                                                        │
                                                        │
                                                        │
                                                        │
                                                        │
                                                        │
                                                        │
                                                        │
                                                        │
                                                        │
                                                        │
     the sides beside each other
     Space choose  ] next block  | side by side  l lines  c commit  d discard  s steps  ? help  q back
    ");
}

#[test]
fn a_question_names_what_would_be_done() {
    assert_snapshot!(text(&drawn(Paper::some(), true, USUAL, "j\t \tjj c")), @"
     session k3fa  pending  make install              4 changes  +1 ~2 -1  3 chosen
    [~] ▾ /p/                  4 +3 -2│
    [~]     ~ a.txt              +2 -1│        2 in this directory
    [ ]     ~ conflict            11 B│        1 created
    [x]   ▾ dir/               2 +1 -1│        1 deleted
    [x┌ Commit 1 block of 1 file and 2 changes of 4? ───────────────────────────┐
    [x│ 1 created, 1 modified, 1 deleted                                        │
      │                                                                         │
      │ modified  a.txt (in part)                                               │
      │ deleted   dir/gone                                                      │
      │ created   dir/new                                                       │
      │                                                                         │
      │ digest b4b69e944c00: if anything of it changes before you answer, it is │
      │ asked again                                                             │
      │                                                                         │
      │ y yes   m give a reason   n no, back                                    │
      └─────────────────────────────────────────────────────────────────────────┘
                                      │
                                      │
                                      │
                                      │
                                      │
     1 thing not among the changes: i
     y yes  n no
    ");
}

#[test]
fn the_keys_are_explained() {
    assert_snapshot!(text(&drawn(Paper::some(), true, (80, 60), "?")), @"
     session k3fa  pending  make install                        4 changes  +1 ~2 -1
    [ ] ▾ /p/                  4 +3 -2│
    [ ]     ~ a.txt              +2 -1│        4 in this directory
    [ ]     ~ conflict            11 B│        1 created
    [ ]   ▾ dir/               2 +1 -1│        2 modified
    [ ]       - gone                -1│        1 deleted
    [ ]     ┌ Keys ───────────────────────────────────────────────────────┐
            │ Move                                                        │
            │   j ↓     down                                              │
            │   k ↑     up                                                │
            │   PgDn    a page down                                       │
            │   PgUp    a page up                                         │
            │   g       to the first row                                  │
            │   G       to the last row                                   │
            │   ←       out of a directory; a difference to the left      │
            │   →       into a directory; a difference to the right       │
            │   Enter   unfold; look at the difference                    │
            │   Tab     between the tree and the difference               │
            │   ]       next block, and on to the next file               │
            │   [       previous block                                    │
            │   /       find text in paths, or in the difference          │
            │   n       next match                                        │
            │   N       previous match                                    │
            │ Choose                                                      │
            │   Space   a file or directory; in a difference a block      │
            │   l       by lines, or by blocks again                      │
            │   a       all of the file                                   │
            │   A       everything                                        │
            │   v       list only what is chosen                          │
            │ Act on what is chosen                                       │
            │   c       commit it: it becomes real                        │
            │   d       discard it: it is no longer held                  │
            │   r       roll back, or restore from a snapshot             │
            │   m       merge it with the tree as it is now               │
            │   u       undo the last act of this screen                  │
            │ Look                                                        │
            │   |       the two sides beside each other                   │
            │   o       order by path, size, kind                         │
            │   e       edit the held file                                │
            │   D       open the tool for differences                     │
            │   s       steps: look at one, go back to it                 │
            │   t       an agent's turns: look at one, undo it            │
            │   i       what is not among the changes                     │
            │   ?       this help                                         │
            │   q       leave, or back to the tree                        │
            │ Signs                                                       │
            │   [x] [~] chosen, chosen in part                            │
            │   + ~ -   created, modified, deleted                        │
            │   m t     metadata alone, time alone                        │
            │   ✓       committed, where others are still held            │
            │   !       a conflict, which m may merge; or programs run it │
            └─────────────────────────────────────────────────────────────┘
                                      │
                                      │
                                      │
                                      │
                                      │
                                      │
     1 thing not among the changes: i
     j k scroll  q back
    ");
}

#[test]
fn steps_are_listed() {
    assert_snapshot!(text(&drawn(Paper::some(), true, USUAL, "sj")), @"
     session k3fa  pending  make install                        4 changes  +1 ~2 -1
    [ ] ▾ /p/                  4 +3 -2│
    [ ]     ~ a.txt              +2 -1│        4 in this directory
    [ ]     ~ conflict            11 B│        1 created
    [ ]   ▾ dir/               2 +1 -1│        2 modified
    [ ]       - gone                -1│        1 deleted
    [ ]       + new                 +1│  2.0 KiB in all
                                      │
                        ┌ Steps, the newest first ─────────────┐
                        │   STEP  COMMAND                      │
                        │ * 2     make install                 │
                        │   1     make                         │
                        │   0     the tree as it was           │
                        └──────────────────────────────────────┘
                                      │
                                      │
                                      │
                                      │
                                      │
                                      │
                                      │
                                      │
     1 thing not among the changes: i
     Enter what it changed  r rewind to it  q back
    ");
}

#[test]
fn a_session_without_changes_says_so() {
    assert_snapshot!(text(&drawn(Paper(Vec::new()), true, USUAL, "jc\t ]v")), @"
     session k3fa  pending  make install                                0 changes
    no changes                        │
                                      │
                                      │
                                      │
                                      │
                                      │
                                      │
                                      │
                                      │
                                      │
                                      │
                                      │
                                      │
                                      │
                                      │
                                      │
                                      │
                                      │
                                      │
                                      │
                                      │
     nothing is chosen: Space chooses
     Enter fold  s steps  ? help  q quit
    ");
}

#[test]
fn what_went_is_red_what_came_is_green_and_a_conflict_is_bold() {
    let of_text = drawn(Paper::some(), true, USUAL, "j\t");
    let of_conflict = drawn(Paper::some(), true, USUAL, "jj");
    assert_eq!(style(&of_text, "+    added").0, Color::Green);
    assert_eq!(style(&of_conflict, "- gone").0, Color::Red);
    assert_eq!(style(&of_conflict, "+ new").0, Color::Green);
    for what in ["! changed since", "! gives rights"] {
        assert_eq!(style(&of_conflict, what), (Color::Red, Modifier::BOLD), "{what}");
    }
    // The words that differ are marked beside the colour.
    let (color, modifier) = style(&of_text, "new word");
    assert_eq!(color, Color::Green);
    assert!(modifier.contains(Modifier::UNDERLINED));
    assert!(!style(&of_text, "the new word").1.contains(Modifier::UNDERLINED));
}

#[test]
fn without_colour_no_cell_has_one_and_the_signs_stand_there() {
    for keys in ["", "j\t", "jj", "j c", "?", "s", "c"] {
        let (plain, colored) = (drawn(Paper::some(), false, USUAL, keys), drawn(Paper::some(), true, USUAL, keys));
        assert!(plain.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset), "{keys}");
        assert_eq!(text(&plain), text(&colored), "{keys}: the same is told");
        assert!(colored.content.iter().any(|cell| cell.fg != Color::Reset), "{keys}");
    }
    assert!(style(&drawn(Paper::some(), false, USUAL, "jj"), "! changed since").1.contains(Modifier::BOLD));
}

#[test]
fn a_window_that_is_too_small_says_what_it_has_and_what_is_needed() {
    assert_snapshot!(text(&drawn(Paper::some(), true, (79, 3), "jc")), @"
    The window has 79 columns and 3 rows.
    recant review needs 80 and 24: make it larger, or press q.
    ");
}
