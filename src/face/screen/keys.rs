//! The keys, and what each is for.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::crossterm;

/// A request of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    Down,
    Up,
    PageDown,
    PageUp,
    /// The first row.
    First,
    Last,
    /// In the tree out of a directory, in a difference to the left.
    Left,
    /// In the tree into a directory, in a difference to the right.
    Right,
    /// Unfolds a directory, or goes to the difference.
    Enter,
    /// Goes to the other side of the screen.
    Switch,
    /// Asks for text to look for.
    Find,
    FindNext,
    FindBefore,
    /// The next block, also in the next file.
    NextBlock,
    BlockBefore,
    /// Chooses what the cursor is on.
    Choose,
    /// Chooses by lines, or by blocks again.
    Lines,
    File,
    All,
    /// Lists what is chosen alone.
    OnlyChosen,
    /// The two sides beside each other.
    Beside,
    /// Another order.
    Order,
    Commit,
    Discard,
    Back,
    Undo,
    Edit,
    /// Opens the tool for differences.
    Tool,
    Merge,
    Steps,
    Turns,
    /// Facts that are not among the changes.
    Notes,
    Help,
    /// Leaves, or goes back to the tree.
    Quit,
    Leave,
    /// Stops the program, as in a shell.
    Stop,
    Redraw,
}

/// A key as people read it, the keys that a terminal sends for it, and what it is for.
pub struct Key {
    pub name: &'static str,
    codes: &'static [KeyCode],
    pub command: Command,
    pub what: &'static str,
}

const fn key(name: &'static str, codes: &'static [KeyCode], command: Command, what: &'static str) -> Key {
    Key { name, codes, command, what }
}

/// All keys, in the groups in which they are explained.
pub const KEYS: [(&str, &[Key]); 4] = [
    (
        "Move",
        &[
            key("j ↓", &[KeyCode::Char('j'), KeyCode::Down], Command::Down, "down"),
            key("k ↑", &[KeyCode::Char('k'), KeyCode::Up], Command::Up, "up"),
            key("PgDn", &[KeyCode::PageDown], Command::PageDown, "a page down"),
            key("PgUp", &[KeyCode::PageUp], Command::PageUp, "a page up"),
            key("g", &[KeyCode::Char('g'), KeyCode::Home], Command::First, "to the first row"),
            key("G", &[KeyCode::Char('G'), KeyCode::End], Command::Last, "to the last row"),
            key("←", &[KeyCode::Left, KeyCode::Char('h')], Command::Left, "out of a directory; a difference to the left"),
            key("→", &[KeyCode::Right], Command::Right, "into a directory; a difference to the right"),
            key("Enter", &[KeyCode::Enter], Command::Enter, "unfold; look at the difference"),
            key("Tab", &[KeyCode::Tab], Command::Switch, "between the tree and the difference"),
            key("]", &[KeyCode::Char(']')], Command::NextBlock, "next block, and on to the next file"),
            key("[", &[KeyCode::Char('[')], Command::BlockBefore, "previous block"),
            key("/", &[KeyCode::Char('/')], Command::Find, "find text in paths, or in the difference"),
            key("n", &[KeyCode::Char('n')], Command::FindNext, "next match"),
            key("N", &[KeyCode::Char('N')], Command::FindBefore, "previous match"),
        ],
    ),
    (
        "Choose",
        &[
            key("Space", &[KeyCode::Char(' ')], Command::Choose, "a file or directory; in a difference a block"),
            key("l", &[KeyCode::Char('l')], Command::Lines, "by lines, or by blocks again"),
            key("a", &[KeyCode::Char('a')], Command::File, "all of the file"),
            key("A", &[KeyCode::Char('A')], Command::All, "everything"),
            key("v", &[KeyCode::Char('v')], Command::OnlyChosen, "list only what is chosen"),
        ],
    ),
    (
        "Act on what is chosen",
        &[
            key("c", &[KeyCode::Char('c')], Command::Commit, "commit it: it becomes real"),
            key("d", &[KeyCode::Char('d')], Command::Discard, "discard it: it is no longer held"),
            key("r", &[KeyCode::Char('r')], Command::Back, "roll back, or restore from a snapshot"),
            key("m", &[KeyCode::Char('m')], Command::Merge, "merge it with the tree as it is now"),
            key("u", &[KeyCode::Char('u')], Command::Undo, "undo the last act of this screen"),
        ],
    ),
    (
        "Look",
        &[
            key("|", &[KeyCode::Char('|')], Command::Beside, "the two sides beside each other"),
            key("o", &[KeyCode::Char('o')], Command::Order, "order by path, size, kind"),
            key("e", &[KeyCode::Char('e')], Command::Edit, "edit the held file"),
            key("D", &[KeyCode::Char('D')], Command::Tool, "open the tool for differences"),
            key("s", &[KeyCode::Char('s')], Command::Steps, "steps: look at one, go back to it"),
            key("t", &[KeyCode::Char('t')], Command::Turns, "an agent's turns: look at one, undo it"),
            key("i", &[KeyCode::Char('i')], Command::Notes, "what is not among the changes"),
            key("?", &[KeyCode::Char('?')], Command::Help, "this help"),
            key("q", &[KeyCode::Char('q'), KeyCode::Esc], Command::Quit, "leave, or back to the tree"),
        ],
    ),
];

/// The request of a key; `None` if it has none.
pub fn command(event: KeyEvent) -> Option<Command> {
    if event.modifiers.contains(KeyModifiers::CONTROL) {
        return match event.code {
            KeyCode::Char('c') => Some(Command::Leave),
            KeyCode::Char('z') => Some(Command::Stop),
            KeyCode::Char('l') => Some(Command::Redraw),
            KeyCode::Char('f' | 'd') => Some(Command::PageDown),
            KeyCode::Char('b' | 'u') => Some(Command::PageUp),
            KeyCode::Char('n') => Some(Command::Down),
            KeyCode::Char('p') => Some(Command::Up),
            _ => None,
        };
    }
    let found = KEYS.iter().flat_map(|(_, keys)| *keys).find(|key| key.codes.contains(&event.code));
    found.map(|key| key.command)
}
