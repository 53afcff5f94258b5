//! The phases of a run's command, and what a signal that reaches recant means in each.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::raw_calls;
use super::raw_calls::Signal;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It does not exist yet: a terminal's signals do not reach it.
    SetsUp,
    Runs,
    /// It ended at this time; other processes of the run may be left.
    Ended(Instant),
    /// Others are left, and a person was told so.
    Waits,
}

/// The time after the command's end until background children are reported.
const PATIENCE: Duration = Duration::from_secs(2);

impl Phase {
    /// The time left until a person is told what is waited for; `None` if nothing is, or it has been said.
    pub fn patience(self) -> Option<Duration> {
        match self {
            Self::Ended(since) => Some(PATIENCE.saturating_sub(since.elapsed())),
            Self::SetsUp | Self::Runs | Self::Waits => None,
        }
    }

    /// True once the command has ended.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Ended(_) | Self::Waits)
    }
}

/// The ways to treat a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalAction {
    /// Ignored: the command has it already, or it concerns nobody.
    Nothing,
    /// Passed on to the command.
    HandOn,
    /// The command is gone: recant ends its waiting, and the children that it waited for.
    EndRest,
}

/// The signals by which a terminal ends a program.
const ENDING: &[i32] = &[libc::SIGINT, libc::SIGQUIT, libc::SIGHUP];

/// The signals heard so far.
#[derive(Debug)]
pub struct SignalsHeard {
    /// True if this process leads its session: a hangup of the terminal comes to it alone.
    leads: bool,
    hung_up: Cell<bool>,
    asked: Cell<Option<i32>>,
}

impl SignalsHeard {
    pub fn nothing() -> Self {
        Self { leads: raw_calls::leads_its_session(), hung_up: Cell::default(), asked: Cell::default() }
    }

    /// True if a hangup came that was not yet passed on to the terminal's other processes.
    pub fn hung_up(&self) -> bool {
        self.hung_up.get()
    }

    /// The first signal that asked for an end before the command existed. The init gets it again, since a retry forks another init.
    pub fn asked(&self) -> Option<i32> {
        self.asked.get()
    }

    /// Decides what a signal means in this phase of the command.
    pub fn hear(&self, signal: &Signal, phase: Phase) -> SignalAction {
        let is_hangup = self.leads && signal.number == libc::SIGHUP;
        if is_hangup && !signal.by_process {
            self.hung_up.set(true);
        } else if is_hangup && phase.is_over() && self.hung_up.replace(false) {
            // recant's own hangup, sent to all processes of the terminal.
            return SignalAction::Nothing;
        }
        // A terminal's signals reach the command by themselves, if it exists.
        let by_terminal = match phase {
            Phase::SetsUp | Phase::Waits => ENDING.contains(&signal.number),
            Phase::Runs | Phase::Ended(_) => is_hangup,
        };
        if signal.number == libc::SIGCONT || !(signal.by_process || by_terminal) {
            return SignalAction::Nothing;
        }
        if phase == Phase::SetsUp && (ENDING.contains(&signal.number) || signal.number == libc::SIGTERM) {
            self.asked.set(self.asked.get().or(Some(signal.number)));
        }
        if phase.is_over() { SignalAction::EndRest } else { SignalAction::HandOn }
    }
}

#[cfg(test)]
mod tests {
    use crate::capture::run::signal_phase::*;

    const TERMINAL: bool = false;
    const PROCESS: bool = true;

    fn heard(leads: bool) -> SignalsHeard {
        SignalsHeard { leads, ..SignalsHeard::nothing() }
    }

    fn signal(number: i32, by_process: bool) -> Signal {
        Signal { number, by_process, forwarded: None }
    }

    #[test]
    fn a_terminal_s_signals_are_handed_on_as_long_as_the_command_is_not_there_to_get_them() {
        let ended = Phase::Ended(Instant::now());
        for number in [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP] {
            let means = |phase| heard(false).hear(&signal(number, TERMINAL), phase);
            assert_eq!([Phase::SetsUp, Phase::Runs, ended, Phase::Waits].map(means), {
                [SignalAction::HandOn, SignalAction::Nothing, SignalAction::Nothing, SignalAction::EndRest]
            });
        }
        for number in [libc::SIGTERM, libc::SIGUSR1, libc::SIGINT] {
            let means = |phase| heard(false).hear(&signal(number, PROCESS), phase);
            assert_eq!([Phase::SetsUp, Phase::Runs, ended, Phase::Waits].map(means), {
                [SignalAction::HandOn, SignalAction::HandOn, SignalAction::EndRest, SignalAction::EndRest]
            });
        }
        assert_eq!(heard(false).hear(&signal(libc::SIGCONT, PROCESS), Phase::SetsUp), SignalAction::Nothing);
    }

    #[test]
    fn what_asked_first_for_an_end_stands_and_what_asks_for_none_does_not() {
        let heard = heard(false);
        for number in [libc::SIGUSR1, libc::SIGUSR1] {
            assert_eq!(heard.hear(&signal(number, PROCESS), Phase::SetsUp), SignalAction::HandOn);
            assert_eq!(heard.asked(), None);
        }
        for number in [libc::SIGINT, libc::SIGINT, libc::SIGTERM, libc::SIGUSR1] {
            assert_eq!(heard.hear(&signal(number, PROCESS), Phase::SetsUp), SignalAction::HandOn);
            assert_eq!(heard.asked(), Some(libc::SIGINT));
        }
    }

    #[test]
    fn a_hangup_that_comes_to_the_leader_alone_is_handed_on_and_what_recant_says_of_it_itself_is_nothing_new() {
        let leads = heard(true);
        assert_eq!(leads.hear(&signal(libc::SIGHUP, TERMINAL), Phase::Runs), SignalAction::HandOn);
        // A signal that comes in between does not make it forget the hangup.
        assert_eq!(leads.hear(&signal(libc::SIGUSR1, PROCESS), Phase::Runs), SignalAction::HandOn);
        assert!(leads.hung_up());
        assert_eq!(leads.hear(&signal(libc::SIGHUP, PROCESS), Phase::Ended(Instant::now())), SignalAction::Nothing);
        assert!(!leads.hung_up());
        assert_eq!(leads.hear(&signal(libc::SIGHUP, PROCESS), Phase::Waits), SignalAction::EndRest);
        let follows = heard(false);
        assert_eq!(follows.hear(&signal(libc::SIGHUP, TERMINAL), Phase::Runs), SignalAction::Nothing);
        assert!(!follows.hung_up());
    }
}
