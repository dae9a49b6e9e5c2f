//! Waits for a cluster to reach a state, and notices at once when one of its components dies.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::command::tail;
use crate::report::duration;
use crate::{interrupt, process};

/// How many lines of a log are shown when its component fails.
const LOG_TAIL: usize = 12;
/// Pause between two looks. Each look may start a program, on a machine that is busy starting up.
const PAUSE: Duration = Duration::from_millis(250);

/// A set of components: whose mark they carry, and where their logs are.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) owner: String,
    pub(crate) logs: PathBuf,
}

impl Place {
    /// Where a component's output goes.
    pub(crate) fn log(&self, component: &str) -> PathBuf {
        self.logs.join(format!("{component}.log"))
    }

    fn last_words(&self, component: &str) -> String {
        let file = self.log(component);
        match fs::read_to_string(&file) {
            Ok(text) if text.is_empty() => format!("{} is empty", file.display()),
            Ok(text) => format!("the end of {}:{}", file.display(), tail(&text, LOG_TAIL)),
            Err(e) => format!("{}: {e}", file.display()),
        }
    }
}

/// What is waited for.
pub(crate) struct Wait<'a> {
    pub(crate) place: &'a Place,
    /// In words, for the message.
    pub(crate) what: &'a str,
    /// The component that most likely knows why it does not come.
    pub(crate) suspect: &'a str,
    /// Components that must stay alive meanwhile.
    pub(crate) alive: &'a [&'static str],
    pub(crate) limit: Duration,
}

impl Wait<'_> {
    /// Returns as soon as `reached` says yes.
    ///
    /// # Errors
    /// When the time is over, a component has ended, or the run is interrupted. The last lines of the
    /// component's log are in the message.
    pub(crate) fn until(&self, mut reached: impl FnMut() -> Result<bool>) -> Result<()> {
        let start = Instant::now();
        loop {
            interrupt::check()?;
            if let Some(dead) = self.dead()? {
                bail!("{dead} has ended while waiting for {}; {}", self.what, self.place.last_words(dead));
            }
            let state = reached();
            if let Ok(true) = state {
                return Ok(());
            }
            if start.elapsed() > self.limit {
                let why = state.err().map(|e| format!(" ({e:#})")).unwrap_or_default();
                bail!(
                    "{} did not come within {}{why}; {}",
                    self.what,
                    duration(self.limit),
                    self.place.last_words(self.suspect)
                );
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn dead(&self) -> Result<Option<&'static str>> {
        let live = process::find(&self.place.owner)?;
        let runs = |name: &str| live.iter().any(|process| process.main && process.mark.component == name);
        Ok(self.alive.iter().find(|name| !runs(name)).copied())
    }
}
