//! Changes of links during a run.

use headway_cc::{Stream, Time};
use headway_net::{Link, Loss, LossProcess};
use headway_scenario::Change;

/// The remaining changes of a run's links.
#[derive(Debug)]
pub struct Changes {
    /// All changes, by time.
    all: Vec<Change>,
    next: usize,
    /// For each link, the random stream of its loss while it loses nothing.
    idle_losses: Vec<Option<Stream>>,
}

impl Changes {
    /// Changes of links; `idle_losses` has the random streams of links that lose nothing at first.
    pub(crate) fn new(mut all: Vec<Change>, idle_losses: Vec<Option<Stream>>) -> Changes {
        all.sort_by_key(|c| c.at);
        Changes {
            all,
            next: 0,
            idle_losses,
        }
    }

    /// When the next one is due; [`Time::NEVER`] if none is left.
    pub fn next(&self) -> Time {
        self.all.get(self.next).map_or(Time::NEVER, |c| c.at)
    }

    /// Carries out the next change that is due by `now`. Returns the index of its link, which may
    /// deliver at another time than before. Call it until it returns `None`.
    pub fn apply(&mut self, now: Time, links: &mut [Link]) -> Option<usize> {
        let change = self.all.get(self.next).filter(|c| c.at <= now)?;
        self.next += 1;
        let link = &mut links[change.link];
        if let Some(rate) = change.rate {
            link.set_rate(now, rate);
        }
        if let Some(delay) = change.delay {
            link.set_delay(now, delay);
        }
        if let Some(probability) = change.loss {
            // There is one stream for the whole run, so that a change does not shift the draws.
            let idle = &mut self.idle_losses[change.link];
            let loss = (probability > 0.0).then_some(Loss::Random { probability });
            let stream = link
                .set_loss(None)
                .map(LossProcess::into_stream)
                .or(idle.take());
            *idle = stream.and_then(|stream| set_loss(link, loss, stream));
        }
        Some(change.link)
    }
}

/// Sets the loss from now on. Returns the stream if nothing is lost.
pub(crate) fn set_loss(link: &mut Link, loss: Option<Loss>, stream: Stream) -> Option<Stream> {
    let Some(loss) = loss else {
        return Some(stream);
    };
    link.set_loss(Some(LossProcess::new(loss, stream)));
    None
}
