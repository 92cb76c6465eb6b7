//! Links as a scenario describes them.

use headway_cc::Stream;
use headway_net::queue::Discipline;
use headway_net::{Link, Loss, LossProcess, Server, TraceCursor};
use headway_scenario::{LinkSpec, RateSpec};

use crate::error::SimulationError;
use crate::simulation::TraceSource;

/// The link without its loss.
pub(crate) fn build_link(
    spec: &LinkSpec,
    traces: TraceSource<'_>,
    seed: u64,
) -> Result<Link, SimulationError> {
    let limits = spec.queue.limits();
    let discipline = &spec.queue.discipline;
    let stream = || Stream::new(seed, &format!("link.{}.queue", spec.name));
    Ok(match &spec.rate {
        RateSpec::Unlimited => Link::wire(spec.delay),
        RateSpec::Fixed(rate) if *discipline == Discipline::DropTail => {
            Link::fifo(*rate, limits, spec.delay)
        }
        RateSpec::Fixed(rate) => {
            let queue = discipline.build(limits, 0, stream());
            Link::queued(queue, Server::fixed(*rate), spec.delay)
        }
        RateSpec::Trace {
            trace,
            offset,
            once,
        } => {
            let trace = traces(trace).map_err(SimulationError::Trace)?;
            let queue = discipline.build(limits, TraceCursor::OVERHEAD, stream());
            let server = Server::trace(trace, *offset, *once);
            Link::queued(queue, server, spec.delay)
        }
    })
}

/// Loses each packet with this probability. Gives the stream back if it is zero.
pub(crate) fn set_loss(link: &mut Link, probability: f64, stream: Stream) -> Option<Stream> {
    if probability == 0.0 {
        return Some(stream);
    }
    let loss = Loss::Random { probability };
    link.set_loss(Some(LossProcess::new(loss, stream)));
    None
}
